// Package config reads stoa.toml: the defaults of flags, and names for places.
//
// The file is that of STOA_CONFIG, else stoa.toml in the user's configuration directory. It is never searched for in
// the working directory: what stoa does must not depend on what a stranger put beside the data. Only harmless flags can
// have defaults: none that overwrites, deletes, skips a check, or hides a warning.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"stoa/format"
)

// Variable is the environment variable with the path of the file; empty: no file is read.
const Variable = "STOA_CONFIG"

// Scheme begins the address of a named place: place://NAME/PATH#TABLE. No file can be meant by it: like other
// addresses it has an empty name of a directory.
const Scheme = "place://"

// maxSize is the maximum size of the file in bytes.
const maxSize = 1 << 20

// Config is the content of a file.
type Config struct {
	File   string // its path; "": there is no file, and none is looked for
	Source string // where the path comes from
	Exists bool
	values map[string]string
	places map[string]string
}

// layout is the file as it is written. The names of fields that are no settings of output are those of flags.
type layout struct {
	Defaults struct {
		Cache       directory `toml:"cache"`
		CacheSize   size      `toml:"cache-size"`
		Colour      *bool     `toml:"colour"`
		Display     form      `toml:"display"`
		MaxRequests *uint32   `toml:"max-requests"`
		Memory      size      `toml:"memory"`
		NoPager     *bool     `toml:"no-pager"`
		NoProgress  *bool     `toml:"no-progress"`
		Pager       *string   `toml:"pager"`
		Parallel    *uint16   `toml:"parallel"`
		Raw         *bool     `toml:"raw"`
	} `toml:"defaults"`
	Places map[string]address `toml:"places"`
}

// The decoder assigns a text to a type that is a string without asking it, so these are structs.
type (
	size      struct{ text string }
	directory struct{ text string }
	form      struct{ text string }
	address   struct{ text string }
)

func (s *size) UnmarshalText(b []byte) error {
	if n, ok := format.ParseSize(string(b)); !ok || n == 0 {
		return fmt.Errorf("%q is not a size: expected one such as \"512MiB\"", b)
	}
	s.text = string(b)
	return nil
}

func (d *directory) UnmarshalText(b []byte) (err error) {
	d.text, err = absolute(string(b))
	return err
}

func (f *form) UnmarshalText(b []byte) error {
	if f.text = string(b); f.text != "table" && f.text != "vertical" {
		return fmt.Errorf("%q is not a form for terminals: expected \"table\" or \"vertical\"", b)
	}
	return nil
}

// plainName reports whether s can name a place.
func plainName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	})
}

// UnmarshalText accepts absolute paths and addresses. Secrets have no place in the file, so those that an address could
// have are refused; the message does not repeat them.
func (a *address) UnmarshalText(b []byte) error {
	s := string(b)
	scheme, rest, remote := strings.Cut(s, "://")
	if !remote {
		var err error
		a.text, err = absolute(s)
		return err
	}
	host, _, _ := strings.Cut(rest, "/")
	user, _, hasUser := strings.Cut(host, "@")
	switch {
	case scheme+"://" == Scheme:
		return errors.New("a place cannot be named by another named place")
	case hasUser && (scheme != "hdfs" || strings.Contains(user, ":")):
		return errors.New("an address with a user or password is not accepted: secrets have no place in this file")
	case strings.Contains(rest, "?"):
		return errors.New("an address with a query (?) is not accepted: it may be a secret, which has no place here")
	}
	a.text = s
	return nil
}

// absolute returns an absolute path; ~/ is the home directory. A relative one would mean something else in each
// directory.
func absolute(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return s, err
		}
		return filepath.Join(home, rest), nil
	}
	if !filepath.IsAbs(s) {
		return s, fmt.Errorf("%q is not absolute: expected a path from / or ~/ on", s)
	}
	return s, nil
}

// Load reads the file. If there is none, the result has neither defaults nor places.
func Load() (*Config, error) {
	c := &Config{Source: "the user's configuration directory"}
	if name, set := os.LookupEnv(Variable); set {
		if c.Source = Variable; name == "" {
			return c, nil
		}
		c.File = name
	} else {
		dir, err := os.UserConfigDir()
		if err != nil {
			return c, nil // no home directory: nothing can be configured
		}
		c.File = filepath.Join(dir, "stoa", "stoa.toml")
	}
	b, err := readFile(c.File)
	if c.Source != Variable && (errors.Is(err, fs.ErrNotExist) || elsewhere(c.File)) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	c.Exists = true
	return c, c.parse(b)
}

// elsewhere reports whether name cannot be this user's file, because its directory is no directory (HOME=/dev/null), or
// that of another user, as after runuser, which keeps HOME.
func elsewhere(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", name)
	case info.Size() > maxSize:
		return nil, fmt.Errorf("%s: expected at most %d bytes, found %d", name, maxSize, info.Size())
	}
	return os.ReadFile(name)
}

func (c *Config) parse(b []byte) error {
	var l layout
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return c.located(err)
	}
	c.values, c.places = map[string]string{}, map[string]string{}
	v := reflect.ValueOf(l.Defaults)
	for i := range v.NumField() {
		f := v.Field(i)
		name := v.Type().Field(i).Tag.Get("toml")
		switch {
		case f.Kind() == reflect.Pointer && !f.IsNil():
			c.values[name] = fmt.Sprint(f.Elem())
		case f.Kind() == reflect.Struct && f.Field(0).String() != "":
			c.values[name] = f.Field(0).String()
		}
	}
	for name, a := range l.Places {
		if !plainName(name) {
			return fmt.Errorf("%s: %q cannot name a place: expected letters, digits and - _ . only", c.File, name)
		}
		c.places[name] = a.text
	}
	return nil
}

// located returns an error of the decoder with the file and the line.
func (c *Config) located(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		e := unknown.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("%s:%d: there is no setting %s; the settings are %s, and the tables defaults and places",
			c.File, line, strings.Join(e.Key(), "."), strings.Join(Names(), ", "))
	}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		if want := expected(at.Key()); want != "" && strings.Contains(at.Error(), "cannot ") {
			return fmt.Errorf("%s:%d: %s: expected %s", c.File, line, at.Key()[1], want)
		}
		return fmt.Errorf("%s:%d: %s", c.File, line, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %w", c.File, err)
}

// expected returns what kind of value a setting has, in place of the decoder's words, which are types of Go.
func expected(key []string) string {
	if len(key) != 2 || key[0] != "defaults" {
		return ""
	}
	t := reflect.TypeFor[layout]().Field(0).Type
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("toml") != key[1] {
			continue
		}
		if f.Type.Kind() != reflect.Pointer {
			return "a text in quotes"
		}
		switch f.Type.Elem().Kind() {
		case reflect.Bool:
			return "true or false"
		case reflect.Uint16, reflect.Uint32:
			return fmt.Sprintf("a number from 0 to %d", uint64(1)<<f.Type.Elem().Bits()-1)
		}
		return "a text in quotes"
	}
	return ""
}

// Names returns the settings that may have a default, in alphabetical order.
func Names() (out []string) {
	t := reflect.TypeFor[layout]().Field(0).Type
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("toml"))
	}
	return out
}

// Default returns the default of a setting, and whether the file has one.
func (c *Config) Default(name string) (string, bool) {
	if c == nil {
		return "", false
	}
	v, ok := c.values[name]
	return v, ok
}

// Places returns the names of places, in alphabetical order.
func (c *Config) Places() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.places))
}

// Place returns the address of a named place, or "".
func (c *Config) Place(name string) string { return c.places[name] }

// Expand replaces a leading place://NAME by the place's address.
func (c *Config) Expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, Scheme)
	if !ok {
		return path, nil
	}
	end := strings.IndexAny(rest, "/#")
	if end < 0 {
		end = len(rest)
	}
	at := ""
	if c != nil {
		at = c.places[rest[:end]]
	}
	if at == "" {
		return "", fmt.Errorf("there is no place named %s", rest[:end])
	}
	return strings.TrimSuffix(at, "/") + rest[end:], nil
}
