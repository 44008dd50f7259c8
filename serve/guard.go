package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// NewToken returns a token that cannot be guessed.
func NewToken() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// cookieOf is the name of the cookie that has the token. Cookies know no ports; so that two servers of one machine do
// not overwrite each other's, the name does.
func cookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "stoa-token-" + port
}

// policy is the content security policy: nothing but what this server has, no script or style in the page itself, no
// frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets pass what the page of this very server asks for:
//   - GET and HEAD, without a body;
//   - under a name of this server (Host): a page elsewhere whose name was made to lead here (DNS rebinding) has
//     another;
//   - from this origin (Origin, Sec-Fetch-Site), or typed by a person;
//   - with the token, if there is one.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !s.knows(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this server has another name: a page elsewhere may have led here")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only reading (GET) is served")
		case r.ContentLength != 0:
			refuse(w, http.StatusRequestEntityTooLarge, "a request has no body")
		case !sameOrigin(r):
			refuse(w, http.StatusForbidden, "another site asks")
		case s.Token != "" && !s.admit(w, r):
			return
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, status int, why string) {
	writeJSON(w, status, errorDoc{Error: why, Class: "refused"})
}

// knows reports whether host, of a request, is a name of this server. An address by numbers always is: names are what
// can be made to lead elsewhere.
func (s *Server) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil {
		return s.Listens || ip.IsLoopback()
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// sameOrigin reports whether a page of this server asks, or no page at all. A person may follow a link elsewhere to
// the page itself.
func sameOrigin(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		if err != nil || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// admit reports whether a request has the token: in a cookie, or in the header Authorization. A token in the address
// becomes a cookie, and disappears from the address.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if given := r.URL.Query().Get("token"); r.URL.Path == "/" && given != "" {
		if !s.right(given) {
			refuse(w, http.StatusUnauthorized, "the token is wrong")
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: given, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode}) // a Strict one would be missing after a link elsewhere was followed
		q := r.URL.Query()
		q.Del("token")
		to := url.URL{Path: "/", RawQuery: q.Encode()}
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusSeeOther)
		return false
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.right(given) {
		return true
	}
	if c, err := r.Cookie(cookieOf(r)); err == nil && s.right(c.Value) {
		return true
	}
	refuse(w, http.StatusUnauthorized, "a token is needed: open the address that stoa serve printed")
	return false
}

func (s *Server) right(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}
