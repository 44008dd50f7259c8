package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	name := filepath.Join(t.TempDir(), "my.toml")
	t.Setenv(Variable, name)
	load := func(text string) (*Config, error) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load()
	}
	_, err := load("[places]\nlake = \"s3://b/x/\"\nnamed.not = 1\n")
	if err == nil || !strings.HasPrefix(err.Error(), name+":3: there is no setting places.named.not;") {
		t.Errorf("a table in places: got %v", err)
	}
	c, err := load("[defaults]\nmemory = \"1GiB\"\nraw = true\npager = \"\"\nparallel = 3\ncache = \"~/c\"\n" +
		"[places]\nlake = \"s3://b/x/\"\ndisk = \"/data\"\nhadoop = \"hdfs://me@name/x\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory": "1GiB", "raw": "true", "pager": "", "parallel": "3",
		"cache": filepath.Join(home, "c")} {
		if got, ok := c.Default(name); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := c.Default("colour"); ok {
		t.Error("colour: got a default, want none")
	}
	if got := c.Places(); !slices.Equal(got, []string{"disk", "hadoop", "lake"}) {
		t.Errorf("got places %q", got)
	}
	for path, want := range map[string]string{"place://lake": "s3://b/x", "place://lake/y#t": "s3://b/x/y#t",
		"place://disk#t": "/data#t", "place:/lake": "place:/lake", "lake": "lake", "x/place://lake": "x/place://lake",
		"place://la": "", "place://": "", "place:///x": "", "place://lakes/x": ""} {
		if got, err := c.Expand(path); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

// TestLoadErrors: each error has the file and the line, and none repeats a secret.
func TestLoadErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "my.toml")
	t.Setenv(Variable, name)
	for _, c := range []struct {
		text, want string // the second line is wrong
	}{
		{"[defaults]\nforce = true", "there is no setting defaults.force"},
		{"[defaults]\nallow-external = true", "there is no setting"},
		{"[defaults]\nquiet = true", "there is no setting"},
		{"[defaults]\nno-verify = true", "there is no setting"},
		{"[defaults]\nassume-single-writer = true", "there is no setting"},
		{"[defaults]\nyes = true", "there is no setting"},
		{"\nmemory = \"1GiB\"", "there is no setting memory"},
		{"\n[place]", "there is no setting place"},
		{"[defaults]\nmemory = \"much\"", "is not a size"},
		{"[defaults]\nmemory = true", "is not a size"},
		{"[defaults]\nmemory = [1]", "memory: expected a text in quotes"},
		{"[defaults]\nraw = \"yes\"", "raw: expected true or false"},
		{"[defaults]\nparallel = -1", "parallel: expected a number from 0 to 65535"},
		{"[defaults]\nparallel = 70000", "parallel: expected a number from 0 to 65535"},
		{"[defaults]\ncache = \"here\"", "is not absolute"},
		{"[defaults]\ndisplay = \"json\"", "is not a form"},
		{"[defaults]\nraw", "expected '='"},
		{"[places]\nx = \"data\"", "is not absolute"},
		{"[places]\nx = \"place://y\"", "another named place"},
		{"[places]\n\"a b\" = \"/x\"", "cannot name a place"},
		{"[places]\n\"\" = \"/x\"", "cannot name a place"},
		{"[places]\nx = \"s3://me:SECRET@b/x\"", "secrets have no place"},
		{"[places]\nx = \"https://SECRET@b/x\"", "secrets have no place"},
		{"[places]\nx = \"hdfs://me:SECRET@b/x\"", "secrets have no place"},
		{"[places]\nx = \"https://b/x?signature=SECRET\"", "may be a secret"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") ||
			!strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
		late := strings.Contains(c.text, "memory = true") || strings.Contains(c.want, "cannot name") // without a line
		if err != nil && !late && !strings.HasPrefix(err.Error(), name+":2: ") {
			t.Errorf("%q: got %v, want line 2", c.text, err)
		}
	}
}

// TestWorkingDirectory: no file in the working directory, however it is named, has any effect.
func TestWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	os.Unsetenv(Variable)
	if err := os.Mkdir("stoa", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stoa.toml", ".stoa.toml", "stoa/stoa.toml"} {
		if err := os.WriteFile(name, []byte("[defaults]\nraw = true\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load()
	if err != nil || c.Exists || len(c.values) > 0 {
		t.Errorf("got %+v, %v, want nothing", c, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "stoa") // a relative path means nothing there
	if c, _ := Load(); c.Exists {
		t.Errorf("got %+v, want nothing", c)
	}
	t.Setenv(Variable, "no-such-file")
	if _, err := Load(); err == nil {
		t.Error("a file that STOA_CONFIG names, and that is not there: got no error")
	}
	t.Setenv(Variable, "")
	if c, err := Load(); err != nil || c.File != "" {
		t.Errorf("an empty STOA_CONFIG: got %+v, %v, want no file", c, err)
	}
}

// TestHomeOfAnother: where HOME cannot hold a file of this user, nothing is configured, and that is no error. A file
// that is named must be readable.
func TestHomeOfAnother(t *testing.T) {
	os.Unsetenv(Variable)
	t.Setenv("XDG_CONFIG_HOME", "")
	homes := []string{os.DevNull}
	if shut := filepath.Join(t.TempDir(), "shut"); os.Getuid() != 0 {
		if err := os.Mkdir(shut, 0); err != nil {
			t.Fatal(err)
		}
		homes = append(homes, shut)
	}
	for _, home := range homes {
		t.Setenv("HOME", home)
		if c, err := Load(); err != nil || c.Exists {
			t.Errorf("HOME=%s: %v, exists: %v", home, err, c.Exists)
		}
	}
	t.Setenv(Variable, filepath.Join(os.DevNull, "stoa.toml"))
	if _, err := Load(); err == nil {
		t.Error("a named file that cannot be read is no error")
	}
}
