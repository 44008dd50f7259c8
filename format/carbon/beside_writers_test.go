package carbon_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestReadersBesideWriters: who reads or verifies a table while somebody loads into it and deletes rows finds no
// damage, and reads the rows of a moment between two changes, or is told that the table changed.
func TestReadersBesideWriters(t *testing.T) {
	const loads = 40
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 30})
	moments := map[int64]bool{30: true}
	for i := int64(1); i < loads; i++ { // 30 rows are loaded, then one of them is deleted
		moments[30+30*i-(i-1)], moments[30+30*i-i] = true, true
	}
	over, stopped := make(chan struct{}), make(chan error, 2)
	repeat := func(look func() error) {
		for {
			select {
			case <-over:
				stopped <- nil
				return
			default:
				if err := look(); err != nil {
					stopped <- err
					return
				}
			}
		}
	}
	go repeat(func() error {
		n, err := rowsWithoutFindings(t.Context(), dir)
		if errors.Is(err, store.ErrChanged) {
			return nil
		}
		if err == nil && !moments[n] {
			err = fmt.Errorf("%d rows were read, and there is no moment with so many", n)
		}
		return err
	})
	go repeat(func() error {
		tg := format.Target{Tree: store.Local{}, Name: dir}
		for f := range carbon.Format.Verify(t.Context(), tg, format.OpenOptions{Depth: format.Deep}) {
			if f.Severity >= region.Error {
				return fmt.Errorf("verify: %+v", f)
			}
		}
		return nil
	})
	for i := 1; i < loads; i++ {
		loadOrders(t, dir, 30*i, 30*i+30)
		if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, fmt.Sprintf("id = %d", 30*i))); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	for range 2 {
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// TestFirstDeleteAfterOpening: if the first rows of a table are deleted after it was opened, and the files that it had
// are gone, a scan returns no row that was deleted.
func TestFirstDeleteAfterOpening(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 30}, [2]int{30, 60})
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err == nil {
		_, err = c.Compact(t.Context(), stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}})
	}
	if err == nil {
		_, err = c.Delete(t.Context(), stoa.DeleteOptions{Where: "id = 7"})
	}
	if err == nil {
		_, err = carbon.Clean(t.Context(), dir, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // also where it is asked again
		n := int64(0)
		for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"id"}}) {
			if err != nil {
				if !errors.Is(err, store.ErrChanged) {
					t.Error(err)
				}
				n = 0
				break
			}
			n += b.NumRows()
		}
		if n != 0 && n != 59 {
			t.Errorf("got %d rows, want 59 or to be told that the table changed", n)
		}
	}
	if n, err := rowsWithoutFindings(t.Context(), dir); err != nil || n != 59 {
		t.Errorf("opened again: got %d rows, %v, want 59", n, err)
	}
}

// rowsWithoutFindings reads a table and returns its number of rows; damage is an error. A delete delta whose delete has
// not ended is only a warning.
func rowsWithoutFindings(ctx context.Context, dir string) (n int64, err error) {
	tab, err := stoa.Open(ctx, dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		return 0, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Columns: []string{"id"}}) {
		if err != nil {
			return 0, err
		}
		n += b.NumRows()
	}
	for _, f := range tab.Findings() {
		if f.Severity >= region.Error {
			return 0, fmt.Errorf("%+v", f)
		}
	}
	return n, nil
}
