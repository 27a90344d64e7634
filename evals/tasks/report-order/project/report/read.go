// Package report sums up what people have spent.
package report

import (
	"fmt"
	"strings"
)

// Entry is a line of the list.
type Entry struct {
	Department, Person string
	Cents              int
}

// Read reads lines such as `sales ann 250`.
func Read(text string) ([]Entry, error) {
	var entries []Entry
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var entry Entry
		if _, err := fmt.Sscanf(line, "%s %s %d", &entry.Department, &entry.Person, &entry.Cents); err != nil {
			return nil, fmt.Errorf("cannot read %q", line)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
