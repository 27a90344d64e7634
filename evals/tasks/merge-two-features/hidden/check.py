import pathlib
import subprocess

from shop.checkout import FREE_FROM, SHIPPING, total

assert (FREE_FROM, SHIPPING) == (500, 50)
assert total([100, 200]) == 350
assert total([600]) == 600
assert total([]) == 0
assert total([100, 100], discount=10) == 230
assert total([500], discount=10) == 500, "the discount comes first: 450 pays shipping"
assert total([600], discount=10) == 540
assert total([100], 100) == 0


def git(*words):
    run = ["git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", *words]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


assert not pathlib.Path(".git/MERGE_HEAD").exists(), "the merge is not finished"
assert len(git("log", "-1", "--format=%P").split()) == 2, "the last commit is no merge"
assert git("log", "-1", "--format=%s") == "Merge branch 'discounts'"
assert git("log", "-1", "--format=%s", "HEAD^2") == "Add discounts"
assert git("log", "-1", "--format=%s", "HEAD^1") == "Add shipping"
assert "<<<<" not in git("show", "HEAD:shop/checkout.py")
assert "discount" in git("show", "HEAD:tests/test_discount.py")
print("PASS")
