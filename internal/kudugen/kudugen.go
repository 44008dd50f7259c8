// Package kudugen computes the contents that a real Kudu stored in the corpus of CFiles, by the formula of the corpus's
// GENERATOR.md: the tables and their history, the order of rows, keys and hash partitions. It also parses Kudu's dumps
// (ParseDump) and finds the blocks of a CFile (Walk). It shares no code with the readers of stoa, which tests compare
// with it. It is used only by tests.
package kudugen

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Cell is a value as stored by Kudu without any encoding: fixed-width types are little-endian (a bool is one byte),
// strings are unchanged. nil is NULL; an empty string is not nil.
type Cell []byte

// Column is a column of a table, as in the corpus's schemas.json.
type Column struct {
	Name        string `json:"name"`
	ID          int    `json:"id"`
	Type        string `json:"type"` // int8 … varchar, "decimal" with Precision
	Key         bool   `json:"key"`
	Nullable    bool   `json:"nullable"`
	Encoding    string `json:"encoding"`
	Compression string `json:"compression"`
	BlockSize   int    `json:"block_size"`
	Precision   int    `json:"precision"`
	Scale       int    `json:"scale"`
	Length      int    `json:"length"` // of a varchar, in characters
}

// Width is the size of a value, in bytes; 0 for strings and binary.
func (c Column) Width() int {
	switch c.Type {
	case "bool", "int8", "uint8":
		return 1
	case "int16", "uint16":
		return 2
	case "int32", "uint32", "date", "float":
		return 4
	case "int64", "uint64", "unixtime_micros", "double":
		return 8
	case "int128":
		return 16
	case "decimal":
		switch {
		case c.Precision <= 9:
			return 4
		case c.Precision <= 18:
			return 8
		}
		return 16
	}
	return 0
}

// Mix computes one step of splitmix64.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// H returns the hash of column c, row r.
func H(c, r int64) int64 { return int64(Mix(uint64(c*1000003 + r))) }

// Base returns the number from which a value is derived. pat: 0 random, 1 runs of 37, 2 a slow ramp, 3 ten distinct
// values.
func Base(c, r int64, pat int) int64 {
	switch pat {
	case 0:
		return H(c, r)
	case 1:
		return H(c, r/37)
	case 2:
		return r*3 - 100
	}
	return H(c, 0) + int64(uint64(H(c, r))>>1)%10*1000003
}

// IsNull implements the rule for nullable columns.
func IsNull(c, r int64, pat int) bool {
	if pat == 1 {
		return H(c+500, r/23)&3 == 0
	}
	return H(c+500, r)&7 == 0
}

// Value returns the cell of column c (its number in the formula), row r.
func Value(col Column, c, r int64, pat int) Cell {
	if col.Nullable && IsNull(c, r, pat) {
		return nil
	}
	b := Base(c, r, pat)
	switch col.Type {
	case "bool":
		return Bool(b&1 == 1)
	case "int8", "int16", "int32", "int64":
		return Int(col.Width(), b)
	case "unixtime_micros":
		if pat == 0 {
			return Int(8, b>>8)
		}
		return Int(8, 1700000000000000+b%1000000007)
	case "date":
		return Int(4, floorMod(b, 3652059)-719162)
	case "float":
		f := float32(float64(b) / 1024)
		switch {
		case b%31 == 0:
			f = math.Float32frombits(0x7fc00000)
		case b%29 == 0:
			f = float32(math.Copysign(0, -1))
		case b%37 == 0:
			f = float32(math.Inf(-1))
		}
		return Int(4, int64(math.Float32bits(f)))
	case "double":
		f := float64(b) / 1024
		switch {
		case b%31 == 0:
			f = math.Float64frombits(0x7ff8000000000000)
		case b%29 == 0:
			f = math.Copysign(0, -1)
		case b%37 == 0:
			f = math.Inf(1)
		}
		return Double(f)
	case "decimal":
		v := big.NewInt(b)
		if col.Precision > 18 {
			v.Mul(v, big.NewInt(0x1234567890abcdf))
		}
		return Big(col.Width(), v.Rem(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(col.Precision)), nil)))
	case "string":
		return str(b)
	case "varchar":
		u := utf16.Encode([]rune(strings.ReplaceAll(string(str(b)), "😀", ""))) // Java counts UTF-16 units
		return Cell(string(utf16.Decode(u[:min(len(u), col.Length)])))
	case "binary":
		x := make(Cell, int(uint64(H(c, b))>>1%24))
		for i := range x {
			x[i] = byte(H(c+7, b+int64(i)))
		}
		return x
	}
	panic("no formula for " + col.Type)
}

func str(b int64) Cell {
	if b%17 == 0 {
		return Cell{}
	}
	s := "k" + strconv.FormatUint(uint64(b), 16)
	if b%5 == 0 {
		s += "é中😀"
	}
	if b%7 == 0 {
		s += "\x00z"
	}
	if b%13 == 0 {
		s = s + s + s
	}
	return Cell(s)
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }

// Int returns v in width bytes, little-endian.
func Int(width int, v int64) Cell { return binary.LittleEndian.AppendUint64(nil, uint64(v))[:width] }

// Double returns f in eight bytes.
func Double(f float64) Cell { return Int(8, int64(math.Float64bits(f))) }

// Bool returns one byte.
func Bool(b bool) Cell {
	if b {
		return Cell{1}
	}
	return Cell{0}
}

// Big returns v in width bytes, little-endian, in two's complement.
func Big(width int, v *big.Int) Cell {
	u := new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128),
		big.NewInt(1))).FillBytes(make([]byte, 16))
	for i := range 8 {
		u[i], u[15-i] = u[15-i], u[i]
	}
	return u[:width]
}

// Signed returns the signed number in a cell.
func (x Cell) Signed() *big.Int {
	u := make([]byte, len(x))
	for i, b := range x {
		u[len(x)-1-i] = b
	}
	v := new(big.Int).SetBytes(u)
	if len(x) > 0 && x[len(x)-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(x))))
	}
	return v
}
