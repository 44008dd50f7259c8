package session

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"stoa/cmd/stoa/verbs"
)

// TestStructsThatBeginInTheMiddle: if rows are left out before a struct is passed to the database, the remaining rows
// keep their own values.
func TestStructsThatBeginInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	q := newAsked(t, &verbs.SQLFlags{Threads: 1})
	for _, to := range []string{"n.parquet", "n.arrow"} {
		file, out := filepath.Join(dir, to), filepath.Join(dir, "out.jsonl")
		if err := q.to(file, "select i as id, {'y': i, 'z': 'a' || i} as x from range(3000) t(i)"); err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{"id > 7", "id between 1500 and 1600", "x.y > 7", "id > 7 and id < 2900"} {
			os.Remove(out)
			if err := q.to(out, "select id, x from "+quote(file)+" where "+where); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
				var row struct {
					ID int64
					X  *struct {
						Y *int64
						Z string
					}
				}
				if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
					t.Fatal(err)
				}
				if row.X == nil || row.X.Y == nil || *row.X.Y != row.ID || row.X.Z != fmt.Sprint("a", row.ID) {
					t.Errorf("%s where %s: got %s", to, where, lines.Text())
					break
				}
			}
			f.Close()
			if rows < 100 {
				t.Errorf("%s where %s: %d rows", to, where, rows)
			}
		}
	}
}
