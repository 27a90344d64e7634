git merge -q --no-commit --no-ff export
sed -i 's/readAll/loadNotes/g; s/note\.text/note.body/g' src/export.mjs README.md
git add -A
git commit -q --no-edit
