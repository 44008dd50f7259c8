package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

// Kudu's restore job requires one root path for all its tables. A backup is written as ROOT/ID-NAME/TIME. convert --all
// writes each table to a place of its own, so that it appears only when it is complete, and then moves it to the common
// root.

// sinceBackup makes --since an option of the writer, if its format has it: what is written then depends on an earlier
// output, and the source is read as it is.
func (c *conversion) sinceBackup(a *cli.App) {
	const since = "since"
	to, earlier := a.Format(c.to), c.OptionValue(since)
	if earlier == "" || to == nil || !slices.ContainsFunc(to.WriteKeys,
		func(k format.OptionKey) bool { return k.Name == since }) {
		return
	}
	c.writeFlags.opts = append(c.writeFlags.opts, since+"="+earlier)
	changed := c.SourceFlags.Changed
	c.SourceFlags.Changed = func(flag string) bool { return flag != since && changed(flag) }
}

// shareRoot moves the backup that was written at dir/NAME, as a root of its own, to the root dir, and records its new
// place.
func (c *conversion) shareRoot(dir string) error {
	if c.levels == 0 {
		return nil
	}
	rel := ""
	for range c.levels { // ID-NAME/TIME
		all, err := os.ReadDir(filepath.Join(c.out, rel))
		if err != nil || len(all) != 1 {
			return errors.Join(fmt.Errorf("%s: %d backups are there instead of one", c.out, len(all)), err)
		}
		rel = filepath.Join(rel, all[0].Name())
	}
	to := filepath.Join(dir, rel)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists", to)
	}
	if err := os.Rename(filepath.Join(c.out, rel), to); err != nil {
		return err
	}
	if err := os.RemoveAll(c.out); err != nil {
		return err
	}
	c.out, c.summary.Output = to, to
	return nil
}

// discard removes a backup that was written by an earlier run and has changed since: the restore job would find it next
// to the new one.
func (c *conversion) discard(output string) error {
	if c.levels == 0 || !filepath.IsLocal(output) {
		return nil
	}
	return os.RemoveAll(filepath.Join(c.out, output))
}
