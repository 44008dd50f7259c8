package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/config"
)

// TestConfig: stoa.toml sets flags that are not given, and names places; the command line overrides it, and a library
// that runs the verbs does not read it.
func TestConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NO_COLOR", "")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("n.csv", "n\n1\n2\n")
	write("big.csv", "n\n"+strings.Repeat("12345\n", 1000))
	t.Setenv(config.Variable, "my.toml")
	show := func(user bool, line string) (int, string) {
		var out bytes.Buffer
		a := cli.NewApp(strings.NewReader(""), &out, &out)
		a.Tty, a.Width, a.UserConfig = true, 80, user
		st := runArgs(a, context.Background(), shellWords(line))
		return st, out.String()
	}
	for _, c := range []struct {
		toml, line string
		status     int
		want       string
	}{
		{"[defaults]\nraw = true", "ls big.csv", 0, " 6002 "},
		{"[defaults]\nraw = true", "ls big.csv --raw=false", 0, "6.0 kB"},
		{"[defaults]\ndisplay = 'vertical'", "head n.csv", 0, "── 2 ──"},
		{"[defaults]\ndisplay = 'vertical'", "head n.csv -f csv", 0, "n\n1\n2\n"},
		{"[defaults]\nmemory = '1kB'", "head n.csv", 1, "(--memory)"},
		{"[defaults]\nmemory = '1kB'", "head n.csv --memory 1GB", 0, ""},
		{"[places]\nhere = '" + dir + "'", "count place://here/n.csv", 0, "2\n"},
		{"[places]\nhere = '" + dir + "'", "convert -q place://here/n.csv -o place://here/out.csv", 0, ""},
		{"[places]\nhere = '" + dir + "'", "count out.csv", 0, ""},
		{"[places]\nhere = '" + dir + "'", "count place://there/n.csv", 2, "there is no place named there"},
		{"[places]\nhere = '" + dir + "'", "config", 0, "place://here"},
		{"[places]\nhere = '" + dir + "'", "cat n.csv -f csv -o place://here/n.csv", 2, "is also a source"},
		{"[defaults]\nforce = true", "count n.csv", 2, "my.toml:2: there is no setting defaults.force"},
		{"[defaults]\nforce = true", "version", 0, "stoa"},
		{"[defaults]\nforce = true", "help config -v", 0, "[places]"},
	} {
		write("my.toml", c.toml)
		if st, out := show(true, c.line); st != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%q, stoa %s: got status %d, %q, want %d, %q", c.toml, c.line, st, out, c.status, c.want)
		}
	}
	write("my.toml", "[defaults]\nraw = true")
	if st, out := show(false, "ls big.csv"); st != 0 || !strings.Contains(out, "6.0 kB") {
		t.Errorf("as a library: got status %d, %q, want rounded sizes", st, out)
	}
}
