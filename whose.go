package stoa

import (
	"path"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// odd tells what of a directory is no file. What has the name of a file of a table's is one that is lost.
func (v *dirVerifier) odd(dir string, claims format.Claimer) error {
	for odd := range store.OddOf(v.ctx, v.o.tree(), dir) {
		f := oddFinding(odd, v.o)
		mine, err := v.whose(claims, odd.Name, false)
		if err != nil {
			return err
		}
		if mine == format.OfTable && f.Severity < region.Error {
			f.Code, f.Severity, f.Lost, f.Message = "file.unreadable", region.Error, -1,
				"by its name it is a file of the table, but: "+odd.What
		}
		if v.files++; !v.stopped {
			v.give(*f)
		}
	}
	return nil
}

// whose is what claims say; nil: nothing. That the store does not answer is told, and the object verified by itself.
func (v *dirVerifier) whose(claims format.Claimer, name string, dir bool) (format.Claim, error) {
	if claims == nil {
		return format.Foreign, nil
	}
	c, err := claims(path.Clean(name), dir)
	if err != nil {
		c = format.Told
	}
	return c, v.refused(name, err)
}
