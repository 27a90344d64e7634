git checkout -q HEAD~1
