sed -i 's/\bfetch\b/load_customer/g' crm/*.py docs/*.md tests/*.py
