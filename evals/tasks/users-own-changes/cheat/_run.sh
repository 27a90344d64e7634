printf '\n    def peek(self):\n        return self._items[-1]\n' >> structures/stack.py
git add -A
git commit -q -m 'Add Stack.peek'
