package parts

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"

	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// ManifestName is the file in a directory that lists the files of its table. Other systems ignore names that begin
// with _.
const ManifestName = "_stoa_manifest.json"

// ManifestVersion is the version of the manifest that this program reads and writes.
const ManifestVersion = 1

// maxManifest bounds the size of a manifest.
const maxManifest = 256 << 20

// Manifest lists the files of a table that several processes wrote. A file that it does not list is not part of the
// table, and one that is gone is missed.
type Manifest struct {
	Version int            `json:"stoa_manifest"`
	Format  string         `json:"format"`
	Jobs    []string       `json:"jobs"` // the last that were committed, the newest last
	Files   []ManifestFile `json:"files"`

	dir   string
	names map[string]bool
}

// ManifestFile is a file, or a directory with one table, by its name in the directory of the manifest.
type ManifestFile struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`  // -1: not known
	Bytes int64  `json:"bytes"` // -1: not known
}

// ReadManifest returns the manifest of a directory; nil if it has none.
func ReadManifest(ctx context.Context, tree store.Tree, dir string) (*Manifest, error) {
	name := path.Join(dir, ManifestName)
	src, err := tree.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > maxManifest {
		return nil, fault.New(fault.Limit, fault.Span{Object: name}, "",
			"expected a manifest of at most %d bytes, found %d", int64(maxManifest), src.Size())
	}
	text := make([]byte, src.Size())
	if _, err := src.ReadAt(ctx, text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m := &Manifest{dir: dir}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fault.Corruptf(fault.Span{Object: name, Len: src.Size()}, "", "the manifest is not JSON: %v", err)
	}
	return m, m.check(name)
}

// check returns an error for what no commit writes.
func (m *Manifest) check(name string) error {
	at := fault.Span{Object: name}
	if m.Version != ManifestVersion {
		return fault.New(fault.Unsupported, at, "stoa_manifest", "expected version %d, found %d", ManifestVersion,
			m.Version)
	}
	m.names = map[string]bool{}
	for _, f := range m.Files {
		if f.Name == "" || f.Name != path.Base(f.Name) || f.Name[0] == '.' || f.Name[0] == '_' {
			return fault.Corruptf(at, "files.name", "expected the name of a file in the directory, found %q", f.Name)
		}
		if m.names[f.Name] {
			return fault.Corruptf(at, "files.name", "%s is listed twice", f.Name)
		}
		m.names[f.Name] = true
	}
	return nil
}

// Lists reports whether an entry of the directory is part of the table. Without a manifest each is.
func (m *Manifest) Lists(name string) bool {
	return m == nil || m.names[path.Base(name)]
}

// wrong returns findings about the entries of the directory: files that the manifest lists and that are gone, and files
// that it does not list.
func (m *Manifest) wrong(ctx context.Context, tree store.Tree, names []string) (out []region.Finding) {
	there := map[string]bool{}
	for _, name := range names {
		base := path.Base(name)
		if there[base] = true; !m.Lists(name) && base[0] != '.' && base[0] != '_' {
			f := finding("dir.left.out", name, "%s does not list it, so that it is not part of the table", ManifestName)
			f.Severity = region.Warning
			out = append(out, f)
		}
	}
	for _, f := range m.Files {
		if name := path.Join(m.dir, f.Name); !there[f.Name] && isMissing(ctx, tree, name) {
			out = append(out, missing(name, "it is missing, but %s lists it", ManifestName))
		}
	}
	return out
}
