package verify

import (
	"errors"
	"io/fs"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/vec"
)

// A summary (_metadata) is a footer on its own: the row groups of all files of a table, each column chunk with the
// name of its file.

// summary checks a summary, and that the files it names exist and are long enough. Their contents are not verified
// here.
func (v *verifier) summary(t format.Target) {
	ends := map[string]int64{} // end of the last chunk in each file
	var names []string
	for g, rg := range v.r.Footer.RowGroups {
		v.find("parquet.sizes", groupSizes(v.r, g))
		for k, c := range rg.Columns {
			name := c.FilePath
			if _, ok := ends[name]; !ok {
				names = append(names, name)
			}
			ends[name] = max(ends[name], v.r.ChunkStart(g, k)+c.MetaData.TotalCompressedSize)
		}
	}
	v.find("parquet.rows", v.r.CheckRows())
	if gap := v.r.FooterAt.Off - v.r.Base - int64(len(meta.Magic)); gap > 0 {
		v.find("parquet.layout", fault.Corruptf(v.r.Span(int64(len(meta.Magic)), gap), "",
			"%d unclaimed bytes", gap))
	}
	for _, name := range names {
		if v.Stopped() || t.At != (vec.Range{}) { // a file embedded in another one has no directory
			return
		}
		v.find("parquet.summary", v.checkNamed(t, name, ends[name]))
	}
}

// checkNamed checks that a file named by a summary exists and has at least end bytes.
func (v *verifier) checkNamed(t format.Target, name string, end int64) error {
	at := v.r.FooterAt
	if !fs.ValidPath(path.Clean(name)) {
		return fault.Corruptf(at, "file_path", "%q is not in the directory of the summary", name)
	}
	info, err := t.Tree.Stat(v.ctx, path.Join(path.Dir(t.Name), name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Corruptf(at, "file_path", "%q is missing", name)
	case err != nil:
		return err
	case info.Dir:
		return fault.Corruptf(at, "file_path", "%q is a directory", name)
	case info.Size >= 0 && info.Size < end:
		return fault.Corruptf(at, "file_path", "%q has %d bytes, the summary has column chunks up to %d", name,
			info.Size, end)
	}
	return nil
}
