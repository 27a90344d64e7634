// Package web answers requests.
package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"example.org/notes/service"
	"example.org/notes/store"
)

// Handler answers /?notes=a,b.
func Handler(s *service.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		summary, err := s.Summary(strings.Split(r.URL.Query().Get("notes"), ",")...)
		if errors.Is(err, store.ErrMissing) {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, summary)
	})
}
