// Package pred is the predicate of a scan: parsed from text, bound to a schema, used to skip what cannot match,
// and evaluated exactly.
//
//	e, err := pred.Parse("price > 3.5 and name like 'a%'")
//	b, err := pred.Bind(e, schema)                  // once a scan
//	v := b.Prune(func(path string) *pred.Bounds …)  // None, Some or All of these rows
//	sel, err := b.Eval(n, column, nil)              // the rows for which b is TRUE
//
// An Expr is one plain struct, a tree; it travels as JSON in the splits of a plan (see Expr and Value for the
// form).
//
// # Grammar
//
// The text of --where. Keywords are case-insensitive; everything between tokens that is white space, and "--
// comment" up to the end of the line, is ignored.
//
//	expr      = conj { "or" conj } .
//	conj      = neg { "and" neg } .
//	neg       = "not" neg | term .
//	term      = "(" expr ")" | "true" | "false" | "null"
//	          | column [ test ]                          // a column alone means: column = true
//	          | literal compare column .                 // turned around: 3 < x is x > 3
//	test      = compare literal
//	          | "is" [ "not" ] "null"
//	          | [ "not" ] "in" "(" [ literal { "," literal } ] ")"
//	          | [ "not" ] "between" literal "and" literal
//	          | [ "not" ] "like" ( string | hex ) [ "escape" string ] .
//	compare   = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" .
//	column    = name { "." name } .
//	name      = ( letter | "_" ) { letter | digit | "_" }    // no keyword, unless after a point
//	          | '"' { any character; "" stands for " } '"' . // one name, even if there are points in it
//	literal   = "null" | "true" | "false" | number | string | hex
//	          | ( "date" | "time" | "timestamp" | "float" | "decimal" ) string .
//	number    = [ "+" | "-" ] ( digits [ "." [ digits ] ] | "." digits ) [ ( "e" | "E" ) [ "+" | "-" ] digits ] .
//	string    = "'" { any character; '' stands for ' } "'" .
//	hex       = ( "x" | "X" ) "'" { hexdigit hexdigit } "'" | "0x" { hexdigit hexdigit } .
//
// Keywords, which as the first name of a column must be quoted: and, between, false, in, is, like, not, null,
// or, true. not binds tighter than and, and tighter than or. Parentheses and not nest at most MaxDepth deep.
//
// A number without point and exponent is an integer; outside of int64 and uint64, and with a point, it is a
// decimal of at most 38 digits; with an exponent it is a float. What no float is near, because it is too great
// or too small, is refused. float 'NaN', float 'Infinity' and float '-Infinity' name the others.
//
// A date is [+-]YYYY-MM-DD with four or more digits for the year. A time is HH:MM[:SS[.fraction]] with up to
// nine digits after the point. A timestamp is a date, then T or a blank, then a time, then nothing, Z or
// ±HH:MM; or a date alone. Without a zone it means UTC. Columns without a time zone are compared as if they
// were UTC, too.
//
// # Comparing
//
// Logic is that of SQL, with three values. A test of a null cell, or with a null literal, is unknown, except is
// null; in is = joined by or, not in is != joined by and; not unknown is unknown; and, or as in SQL. A row is
// chosen if the whole is TRUE. In one place SQL systems disagree: a null cell in an empty list is unknown here,
// so that "x in ()" says "never" and "x not in ()" says "whenever x is not null".
//
// A literal is compared with a cell by its exact value, whatever their types; it is never rounded or cut to
// fit: for an int8 column x < 1000 holds for all that is not null, x = 3.5 for none, and x > 3.5 is x >= 4.
// There is one exception: a decimal or float literal against a float column means the nearest number that the
// column's type has (so that 0.1 finds 0.1), as long as that is neither zero nor infinite unless the literal
// is. Integers are not rounded.
//
// Floats, literals as well as cells, are in total order: NaN is equal to NaN and greater than everything,
// +Infinity included; -0.0 is equal to 0.0. So x > 3 is true for NaN. Strings and binary are compared byte by
// byte, as unsigned; strings so are in the order of code points. Booleans: false < true. Dates are midnight UTC
// when compared with timestamps. Date64 columns are instants in milliseconds. Durations are counted in the
// column's unit.
//
//	column                         literals it can be compared with
//	bool                           true, false
//	(u)int8…64, float, decimal     integer, decimal, float
//	duration                       integer, decimal, float
//	string, binary (any layout)    string, hex
//	date32, date64, timestamp      date, timestamp; a string that is one of them
//	time32, time64                 time; a string that is one
//	dictionary                     as its values
//	null                           any; the answer is always unknown
//	list, map, struct, …           none; only is null
//	union, run ends                none; not even that: they have no nulls of their own
//
// Anything else is an error of class Invalid.
//
// # Like
//
// % stands for any run of characters, also the empty one; _ for exactly one character (in binary columns: one
// byte; in strings a byte that is not UTF-8 counts as one). The escape character takes the meaning from the
// character after it; it is the backslash, or the one given by escape; an empty text there means that there is
// none. A pattern must match the whole value. Letters are compared exactly.
//
// # Columns
//
// A column is named by the names of its fields from the outermost inwards, joined with points; a name with a
// point, a quote or without any character is put in quotes (see JoinPath, SplitPath). Where a.b is not b in a
// struct a, it is a field "a.b", if there is one. Fields of structs can be named; where a parent is null, they
// are. Fields below a list or map cannot, as they have no single value a row; but lists, maps and structs
// themselves can be asked is null.
package pred
