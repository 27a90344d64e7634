git checkout -q -b export
cat > src/export.mjs <<'END'
import { readAll } from "./notes.mjs";

/** Return all notes as Markdown. */
export const markdown = () => readAll().map((note) => `# ${note.title}\n\n${note.text}\n`).join("\n");
END
cat > README.md <<'END'
`markdown()` of src/export.mjs exports what `readAll()` gives.
END
git add -A
git commit -q -m 'Export notes'
git checkout -q main
sed -i 's/readAll/loadNotes/g; s/text: /body: /g' src/notes.mjs
sed -i 's/readAll/loadNotes/g' src/main.mjs
git add -A
git commit -q -m 'Rename readAll to loadNotes, and text to body'
