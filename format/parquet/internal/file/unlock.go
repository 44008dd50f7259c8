package file

import (
	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// openFooter gives the Thrift of an encrypted footer: FileCryptoMetaData, then the footer as a module.
func (r *File) openFooter(b []byte) ([]byte, error) {
	c := wire.NewCursor(b, r.FooterAt, "footer")
	t := thrift.NewReader(c, thrift.Compact)
	var a meta.Algorithm
	var id []byte
	for t.Struct("crypto_metadata"); t.Next(); {
		switch t.Field() {
		case 1:
			a = meta.ParseAlgorithm(t)
		case 2:
			id = t.Bytes("key_metadata")
		}
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	at := r.FooterAt.Sub(int64(c.Pos()), int64(c.Left()))
	if !a.Known {
		return nil, fault.Unsupportedf(r.FooterAt, "footer/crypto_metadata",
			"an encryption that is neither AES_GCM_V1 nor AES_GCM_CTR_V1")
	}
	key := r.keys.FindFooter(id)
	if key == nil {
		return nil, fault.Unsupportedf(at, "footer", "it is encrypted%s, and no key for it is given (--key-file)",
			meta.QuotedID(id))
	}
	s, err := meta.NewSealed(key, &a, r.keys)
	if err != nil {
		return nil, err
	}
	plain, used, err := s.Open(c.Rest(), meta.FooterModule, 0, meta.Room)
	if err != nil {
		if meta.ModuleSize(c.Rest(), meta.SignatureSize) == 0 {
			return nil, fault.Locate(err, at, true, "footer")
		}
		return nil, wrongKey(at, "footer", "the footer", id)
	}
	if used != c.Left() {
		return nil, fault.Corruptf(at.Sub(int64(used), at.Len-int64(used)), "footer",
			"%d bytes behind the encrypted footer", c.Left()-used)
	}
	r.algorithm, r.sealed, r.Hidden = &a, s, true
	return plain, nil
}

// wrongKey is that a module, which is there by its length, does not open: no cipher can tell a wrong key from a damaged
// module, so it is not called damage.
func wrongKey(at fault.Span, path, what string, id []byte) error {
	return fault.New(fault.Invalid, at, path,
		"the key given for %s%s does not open it: it is another key (or another AAD prefix), or its bytes were changed",
		what, meta.QuotedID(id))
}

// unlock opens what the keys open of a footer that was read: the metadata of columns.
func (r *File) unlock(footer []byte) error {
	if a := r.Footer.Algorithm; a != nil { // a plain footer
		if !a.Known {
			return nil // the columns say so
		}
		r.algorithm = a
		key := r.keys.FindFooter(r.Footer.Signer)
		if key != nil {
			s, err := meta.NewSealed(key, a, r.keys)
			if err != nil {
				return err
			}
			n := r.Footer.Length
			if len(footer)-n != meta.SignatureSize || !s.Signed(footer[:n], footer[n:]) {
				return wrongKey(r.FooterAt, "footer.signature", "the signature of the footer", r.Footer.Signer)
			}
			r.sealed = s
		}
	}
	if r.algorithm == nil {
		return nil
	}
	for g, rg := range r.Footer.RowGroups {
		ordinal := g
		if rg.Ordinal != nil {
			ordinal = int(*rg.Ordinal)
		}
		for k, c := range rg.Columns {
			if c.Crypto == nil || k >= r.Footer.Schema.NumColumns() {
				continue
			}
			if err := r.unlockChunk(c, g, k, ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlockChunk takes the metadata of a chunk whose key is known.
func (r *File) unlockChunk(c *meta.ChunkMeta, group, column, ordinal int) error {
	s := r.sealed
	path := r.Footer.Schema.Column(column).Path()
	if c.Crypto.Own {
		key := r.keys.Find(path, c.Crypto.Id)
		if key == nil {
			return nil
		}
		var err error
		if s, err = meta.NewSealed(key, r.algorithm, r.keys); err != nil {
			return err
		}
	}
	if s == nil {
		return nil
	}
	s = s.Of(ordinal, column)
	if c.Locked != nil {
		b, _, err := s.Open(c.Locked, meta.MetaModule, 0, meta.Room)
		if err != nil {
			return wrongKey(r.FooterAt, meta.IndexPath(group, column, "encrypted_column_metadata"), "column "+path,
				c.Crypto.Id)
		}
		cur := wire.NewInnerCursor(b, r.FooterAt, meta.IndexPath(group, column, "encrypted_column_metadata")).
			Within(r.Limits.Memory())
		m := meta.ParseColumnMeta(thrift.NewReader(cur, thrift.Compact))
		if cur.Err() != nil {
			return cur.Err()
		}
		c.MetaData = m
	}
	c.Sealed, c.Encrypted = s, false
	return nil
}
