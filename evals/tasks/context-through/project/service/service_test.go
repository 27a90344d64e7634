package service

import (
	"testing"

	"example.org/notes/store"
)

func TestSummary(t *testing.T) {
	s := &Service{Store: &store.Store{Notes: map[string]string{"a": "one\ntwo", "b": "three"}}}
	if got, err := s.Summary("a", "b"); err != nil || got != "one\nthree" {
		t.Fatal(got, err)
	}
}
