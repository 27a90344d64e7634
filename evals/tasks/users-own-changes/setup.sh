cat >> structures/queue.py <<'END'

    def get(self):
        return self._items.pop(0)  # TODO slow
END
sed -i '1i """A stack. (I will write more here.)"""\n' structures/stack.py
