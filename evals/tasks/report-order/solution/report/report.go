package report

import (
	"fmt"
	"sort"
	"strings"
)

// Totals returns what each department has spent.
func Totals(entries []Entry) map[string]int {
	totals := map[string]int{}
	for _, entry := range entries {
		totals[entry.Department] += entry.Cents
	}
	return totals
}

// Text returns the report: departments by their total, the largest first, and people by name.
func Text(entries []Entry) string {
	totals := Totals(entries)
	departments := names(totals)
	sort.SliceStable(departments, func(one, other int) bool {
		return totals[departments[one]] > totals[departments[other]]
	})
	var text strings.Builder
	for _, department := range departments {
		fmt.Fprintf(&text, "%s %d.%02d\n", department, totals[department]/100, totals[department]%100)
		people := map[string]int{}
		for _, entry := range entries {
			if entry.Department == department {
				people[entry.Person] += entry.Cents
			}
		}
		for _, person := range names(people) {
			fmt.Fprintf(&text, "  %s %d.%02d\n", person, people[person]/100, people[person]%100)
		}
	}
	return text.String()
}

// names returns the names of a map, in order.
func names(totals map[string]int) []string {
	var found []string
	for name := range totals {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}
