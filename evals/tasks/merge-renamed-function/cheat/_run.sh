git merge -q --no-edit export
printf 'export const readAll = () => loadNotes().map((note) => ({ ...note, text: note.body }));\n' >> src/notes.mjs
git commit -q -a -m 'Adapt'
