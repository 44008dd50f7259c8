package change

import (
	"os"
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// TestDeltaIsReadBack: a delete delta in which the storage changed a digit is refused and removed; an unchanged one is
// accepted.
func TestDeltaIsReadBack(t *testing.T) {
	const text = `{"blockletDetailsMap":{"0_1":{"id":"0","pageId":1,"deletedRows":[3,14]},"2_0":{"id":"2",` +
		`"pageId":0,"deletedRows":[7]}},"blockName":"part-0-0"}`
	gone := table.Deletes{{Blocklet: 0, Page: 1}: {3, 14}, {Blocklet: 2, Page: 0}: {7}}
	dir := t.TempDir()
	name := filepath.Join(dir, "part-0-0-1700000000000.deletedelta")
	m := &table.Managed{Table: &table.Table{Tree: store.Local{}}}
	m.Opts.Limits = format.Limits{}.WithDefaults()
	u := &status.Update{Block: "part-0-0", From: "1700000000000", To: "1700000000000", Deleted: "3"}
	try := func(b string) error {
		if err := os.WriteFile(name, []byte(b), 0o666); err != nil {
			t.Fatal(err)
		}
		return verifyDelta(m, t.Context(), u, name, gone)
	}
	if err := try(text); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Fatal(err)
	}
	harmed := 0
	for i, c := range []byte(text) {
		if c < '0' || c > '9' || text[i-1] == '_' || text[i+1] == '_' { // the keys of the map are not read
			continue
		}
		b := []byte(text)
		b[i] = '0' + (c-'0'+1)%10
		if harmed++; try(string(b)) == nil {
			t.Errorf("%s: expected an error", b)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s: expected the file to be removed", b)
		}
	}
	if harmed < 10 {
		t.Errorf("expected at least 10 digits, found %d", harmed)
	}
}
