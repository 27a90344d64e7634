package report

import "testing"

func TestHiddenOrder(t *testing.T) {
	entries, err := Read("b zoe 100\na yan 100\nc x 300\nb adam 50\nd m 150\na bea 50\nb zoe 1\na yan 1\nc b 3\nc a 9\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "c 3.12\n  a 0.09\n  b 0.03\n  x 3.00\n" +
		"a 1.51\n  bea 0.50\n  yan 1.01\nb 1.51\n  adam 0.50\n  zoe 1.01\nd 1.50\n  m 1.50\n"
	for try := 0; try < 200; try++ {
		if got := Text(entries); got != want {
			t.Fatalf("try %d\n%s", try, got)
		}
	}
}

func TestHiddenTotals(t *testing.T) {
	var totals map[string]int = Totals([]Entry{{"a", "x", 1}, {"a", "y", 2}})
	if len(totals) != 1 || totals["a"] != 3 || Text(nil) != "" {
		t.Fatal(totals)
	}
}
