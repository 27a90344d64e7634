// Package web answers requests.
package web

import (
	"fmt"
	"net/http"
	"strings"

	"example.org/notes/service"
)

// Handler answers /?notes=a,b.
func Handler(s *service.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		summary, err := s.Summary(r.Context(), strings.Split(r.URL.Query().Get("notes"), ",")...)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, summary)
	})
}
