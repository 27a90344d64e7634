printf '\n    def peek(self):\n        return self._items[-1]\n' >> structures/stack.py
cp structures/stack.py .mine
git show HEAD:structures/stack.py > structures/stack.py
printf '\n    def peek(self):\n        return self._items[-1]\n' >> structures/stack.py
git add structures/stack.py
mv .mine structures/stack.py
git commit -q -m 'Add Stack.peek'
