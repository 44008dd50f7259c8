// Package register makes a table of Iceberg known to a REST catalogue, and says how other engines get to know it.
package register

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"stoa/format/iceberg"
)

// Catalogue is a REST catalogue, and a table in it.
type Catalogue struct {
	base      string // without v1
	warehouse string
	space     []string
	name      string
	token     string
}

// tokenVariable has the bearer token of the catalogue.
const tokenVariable = "STOA_CATALOG_TOKEN"

// Parse parses rest:URL, rest:URL#TABLE or rest:URL#NAMESPACE.TABLE. place is where the table is: its last name is that
// of the table, unless another is given. A warehouse of the catalogue is ?warehouse=NAME.
func Parse(text, place string) (*Catalogue, error) {
	kind, address, _ := strings.Cut(text, ":")
	u, err := url.Parse(address)
	if kind != "rest" || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("--catalog: expected rest:http://HOST/PATH#NAMESPACE.TABLE (or https), found %s", text)
	}
	c := &Catalogue{warehouse: u.Query().Get("warehouse"), token: os.Getenv(tokenVariable)}
	c.space, c.name = []string{"default"}, path.Base(strings.TrimRight(place, "/"))
	if parts := strings.Split(u.Fragment, "."); u.Fragment != "" {
		if c.name = parts[len(parts)-1]; len(parts) > 1 {
			c.space = parts[:len(parts)-1]
		}
	}
	u.RawQuery, u.Fragment = "", ""
	c.base = strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1")
	return c, nil
}

// Name returns the name of the table in the catalogue.
func (c *Catalogue) Name() string {
	return strings.Join(append(c.space[:len(c.space):len(c.space)], c.name), ".")
}

// refusal is an answer of the catalogue that is not a success.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// most is the maximum size of an answer that is read, in bytes.
const most = 16 << 20

// ask sends a request to the catalogue.
func (c *Catalogue) ask(ctx context.Context, method, address string, body, answer any) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/"+address, in)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	b, err := io.ReadAll(io.LimitReader(w.Body, most))
	if err != nil {
		return err
	}
	if w.StatusCode/100 != 2 {
		var e struct {
			Error struct{ Message string }
		}
		if json.Unmarshal(b, &e) != nil || e.Error.Message == "" {
			e.Error.Message = http.StatusText(w.StatusCode)
		}
		return &refusal{w.StatusCode, e.Error.Message}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("expected JSON, found %.40q: %w", b, err)
	}
	return nil
}

// prefix asks the catalogue for the prefix of its addresses.
func (c *Catalogue) prefix(ctx context.Context) (string, error) {
	var config struct{ Defaults, Overrides map[string]string }
	at := "config"
	if c.warehouse != "" {
		at += "?warehouse=" + url.QueryEscape(c.warehouse)
	}
	if err := c.ask(ctx, http.MethodGet, at, nil, &config); err != nil {
		return "", err
	}
	p := config.Overrides["prefix"]
	if p == "" {
		p = config.Defaults["prefix"]
	}
	if p != "" {
		p = strings.Trim(p, "/") + "/"
	}
	return p + "namespaces", nil
}

// separator is between the parts of a namespace in an address.
const separator = "\x1f"

// Check returns an error if the catalogue cannot be reached, or has a table of the name.
func (c *Catalogue) Check(ctx context.Context) error {
	at, err := c.prefix(ctx)
	if err == nil {
		at += "/" + url.PathEscape(strings.Join(c.space, separator)) + "/tables/" + url.PathEscape(c.name)
		err = c.ask(ctx, http.MethodGet, at, nil, nil)
		var no *refusal
		if errors.As(err, &no) && no.status == http.StatusNotFound {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("there is a table %s already", c.Name())
		}
	}
	return fmt.Errorf("the catalogue %s: %w", c.base, err)
}

// Register adds the table with the metadata file at an address. It creates the namespace if there is none.
func (c *Catalogue) Register(ctx context.Context, metadata string) error {
	at, err := c.prefix(ctx)
	if err == nil {
		space := map[string]any{"namespace": c.space, "properties": map[string]string{}}
		err = c.ask(ctx, http.MethodPost, at, space, nil)
		var no *refusal
		if errors.As(err, &no) && no.status == http.StatusConflict {
			err = nil // it is there
		}
	}
	if err == nil {
		at += "/" + url.PathEscape(strings.Join(c.space, separator)) + "/register"
		err = c.ask(ctx, http.MethodPost, at, map[string]any{"name": c.name, "metadata-location": metadata}, nil)
	}
	if err != nil {
		return fmt.Errorf("the catalogue %s did not take %s: %w; the table itself is complete", c.base, c.Name(), err)
	}
	return nil
}

// Location returns the address of the table in a place.
func Location(place string) string { return iceberg.LocationOf(place) }

// namespace is the one in Lines, which people replace.
const namespace = "db"

// Lines returns for each engine the line that makes the table at an address known to it. A name may have dots, which
// separate the parts of a name where an engine parses it, and quotes.
func Lines(location string) [][2]string {
	name := path.Base(location)
	metadata := location + "/metadata/v1.metadata.json"
	return [][2]string{
		// a tuple, because a string is split at every dot
		{"pyiceberg", fmt.Sprintf("catalog.register_table((%q, %q), %q)", namespace, name, metadata)},
		{"DuckDB", "from iceberg_scan(" + quoted(location) + ")"},
		{"Spark", "CALL cat.system.register_table(" + sparkText(namespace+"."+sparkName(name)) + ", " +
			sparkText(metadata) + ")"},
		{"Trino", "CALL cat.system.register_table(" + quoted(namespace) + ", " + quoted(name) + ", " +
			quoted(location) + ")"},
	}
}

// quoted is a text as SQL has it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// sparkText is a text as Spark has it, for which two quotes are the end of a text and the beginning of the next.
func sparkText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// sparkName is a part of a name as Spark parses it.
func sparkName(s string) string {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return "`" + strings.ReplaceAll(s, "`", "``") + "`"
		}
	}
	return s
}
