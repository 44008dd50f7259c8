package kudubackup

import "testing"

// TestManyWays: if two backups exist for each of many times, the shortest chain is found without trying all 2⁴⁰ chains.
func TestManyWays(t *testing.T) {
	var all []*backupDir
	for to := int64(1); to <= 40; to++ {
		from := to - 1
		all = append(all, &backupDir{from: from, to: to}, &backupDir{from: from, to: to})
	}
	all = append(all, &backupDir{from: 10, to: 40})
	c, err := chainOf(all, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != 11 || c[0].from != 0 || c[10].from != 10 || c[10].to != 40 {
		t.Errorf("a chain of %d backups, want 10 and the one from 10 to 40", len(c))
	}
	for i, b := range c[1:] {
		if b.from != c[i].to {
			t.Errorf("backup %d begins at %d, the one before ends at %d", i+1, b.from, c[i].to)
		}
	}
}
