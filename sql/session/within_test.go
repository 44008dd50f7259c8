package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithin: with --within a query reads what lies below the places, through stoa, and neither reads anything else,
// nor writes, nor allows itself to.
func TestWithin(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(secret, []byte("word\nxyzzy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "place")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(place, "in.csv")
	if err := os.WriteFile(inside, []byte("n\n7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(place, "link.csv")); err != nil {
		t.Fatal(err)
	}
	within := func(query string) (int, string, string) { return run("--within", place, "-f", "jsonl", query) }
	for query, want := range map[string]string{
		"from " + quote(inside):                                    "{\"n\":7}\n",
		"from stoa(" + quote(inside) + ")":                         "{\"n\":7}\n",
		"select count(*) as n from stoa_ls(" + quote(inside) + ")": "{\"n\":1}\n",
	} {
		if status, out, errs := within(query); status != 0 || out != want {
			t.Errorf("%s: status %d, %q: %s", query, status, out, errs)
		}
	}
	s := quote(secret)
	for _, query := range []string{
		"from " + s, "from stoa(" + s + ")", "from stoa_ls(" + s + ")", "from stoa_describe(" + s + ")",
		"from stoa_diff(" + quote(inside) + ", " + s + ")", "from read_csv(" + s + ")", "from read_text(" + s + ")",
		"from glob(" + s + ")", "from " + quote(place+"/link.csv"), "from " + quote(place+"/../secret.csv"),
		"from stoa_ls('@" + secret + "')", "from stoa(" + quote(inside) + ", options := 'schema=" + secret + "')",
		"attach " + s, "install httpfs", "load " + s, "import database " + quote(dir),
		"set enable_external_access = true; from read_csv(" + s + ")",
		"set lock_configuration = false; set enable_external_access = true; from read_csv(" + s + ")",
		"reset enable_external_access; from read_csv(" + s + ")",
		"copy (select 1) to " + quote(dir+"/out.csv"), "copy (select 1 as a) to " + quote(place+"/out.parquet"),
		"copy (select 1 as a) to " + quote(place+"/out.cfile"),
		"create table " + quote(place+"/out.red") + " as select 1 as a", "export database " + quote(dir+"/out"),
		"set temp_directory = " + quote(dir),
	} {
		status, out, errs := within(query)
		if status == 0 || strings.Contains(out+errs, "xyzzy") {
			t.Errorf("%s: status %d, %q: %s", query, status, out, errs)
		}
	}
	for _, d := range []string{dir, place} {
		all, _ := filepath.Glob(d + "/*")
		if len(all) != 2 {
			t.Errorf("%s has %q", d, all)
		}
	}
}
