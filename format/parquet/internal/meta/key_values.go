package meta

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// KeyValueChanges are the changes that options make to key/value metadata.
type KeyValueChanges struct {
	set  []KeyValue
	drop []string
}

// ParseKeyValueChanges parses the options metadata (items of the form KEY=VALUE) and drop-metadata (keys).
func ParseKeyValueChanges(set, drop []string) (c KeyValueChanges, err error) {
	for _, item := range set {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return c, fault.Invalidf("metadata=%s: not of the form KEY=VALUE", item)
		}
		if slices.ContainsFunc(c.set, func(p KeyValue) bool { return p.Key == key }) {
			return c, fault.Invalidf("metadata=%s: key %s is given twice", item, key)
		}
		c.set = append(c.set, KeyValue{key, &value})
	}
	c.drop = drop
	for _, key := range c.keys() {
		if key == StoredSchema || key == SealKey || key == PartKey {
			return c, fault.Invalidf("key %s is reserved: it describes the file itself", key)
		}
	}
	for _, key := range c.drop {
		if slices.ContainsFunc(c.set, func(p KeyValue) bool { return p.Key == key }) {
			return c, fault.Invalidf("metadata and drop-metadata both name key %s", key)
		}
	}
	return c, nil
}

func (c *KeyValueChanges) keys() (out []string) {
	for _, p := range c.set {
		out = append(out, p.Key)
	}
	return append(out, c.drop...)
}

// Apply returns the key/value metadata for a file that has some of the columns: changed as the options require, without
// descriptions of absent columns.
func (c *KeyValueChanges) Apply(pairs []KeyValue, columns []arrow.Field) (out []KeyValue, err error) {
	for _, key := range c.drop {
		if !slices.ContainsFunc(pairs, func(p KeyValue) bool { return p.Key == key }) {
			return nil, fault.Invalidf("drop-metadata=%s: there is no such key", key)
		}
	}
	for _, p := range pairs {
		if slices.Contains(c.drop, p.Key) {
			continue
		}
		if p.Value != nil {
			value, ok := CutToColumns(p.Key, *p.Value, columns)
			if !ok {
				continue
			}
			p.Value = &value
		}
		out = append(out, p)
	}
	return c.Replace(out), nil
}

// Replace returns pairs with the keys of c.set replaced or appended.
func (c *KeyValueChanges) Replace(pairs []KeyValue) (out []KeyValue) {
	left := slices.Clone(c.set)
	for _, p := range pairs {
		if i := slices.IndexFunc(left, func(s KeyValue) bool { return s.Key == p.Key }); i >= 0 {
			p = left[i]
			left = slices.Delete(left, i, i+1)
		}
		out = append(out, p)
	}
	return append(out, left...)
}
