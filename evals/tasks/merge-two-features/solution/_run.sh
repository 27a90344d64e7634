git add -A
git commit -q --no-edit
