mkdir library
mv library.py library/_all.py
echo 'from library._all import *' > library/__init__.py
echo 'from library._all import Book, Member' > library/models.py
echo 'from library._all import Loan, lend, give_back' > library/loans.py
echo 'from library._all import fine, DAY_CENTS' > library/fines.py
