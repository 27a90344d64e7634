package report

import "testing"

func TestReport(t *testing.T) {
	entries, err := Read("lab bob 120\nsales ann 250\nsales eve 100\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "sales 3.50\n  ann 2.50\n  eve 1.00\nlab 1.20\n  bob 1.20\n"
	if got := Text(entries); got != want {
		t.Fatalf("got\n%s", got)
	}
}
