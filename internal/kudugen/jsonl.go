package kudugen

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
)

// ParseRows reads a JSON lines file of the corpus: an array for each row, with cells in the order of cols.
func ParseRows(r io.Reader, cols []Column) ([][]Cell, error) {
	var rows [][]Cell
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var raw []json.RawMessage
		if err := json.Unmarshal(sc.Bytes(), &raw); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(rows), err)
		}
		if len(raw) != len(cols) {
			return nil, fmt.Errorf("row %d has %d cells, not %d", len(rows), len(raw), len(cols))
		}
		row := make([]Cell, len(raw))
		for i, x := range raw {
			c, err := parseJSON(x, cols[i])
			if err != nil {
				return nil, fmt.Errorf("row %d, %s: %w", len(rows), cols[i].Name, err)
			}
			row[i] = c
		}
		rows = append(rows, row)
	}
	return rows, sc.Err()
}

func parseJSON(raw json.RawMessage, c Column) (Cell, error) {
	s := string(raw)
	if s == "null" {
		return nil, nil
	}
	if s[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
	}
	switch c.Type {
	case "bool":
		b, err := strconv.ParseBool(s)
		return Bool(b), err
	case "float", "double":
		u, err := strconv.ParseUint(s, 16, 8*c.Width())
		return Int(c.Width(), int64(u)), err
	case "string", "varchar":
		return Cell(s), nil
	case "binary":
		b, err := hex.DecodeString(s)
		return append(Cell{}, b...), err
	}
	return parseNumber(s, c.Width())
}

func parseNumber(s string, width int) (Cell, error) {
	v, ok := new(big.Int).SetString(s, 10)
	if !ok || v.BitLen() >= 8*width && v.Cmp(new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), uint(8*width-1)))) != 0 {
		return nil, fmt.Errorf("%q is not a number of %d bytes", s, width)
	}
	return Big(width, v), nil
}
