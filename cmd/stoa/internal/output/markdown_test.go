package output

import "testing"

// TestMarkdownShowsCellsAsTheyAre: the escapes are those of GitHub Flavored Markdown (2.4, backslash escapes; 4.10,
// tables; 6.2, emphasis within words). A cell stays one cell, and what it holds is no mark, link or HTML.
func TestMarkdownShowsCellsAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, 1.5": "plain text, 1.5", "a|b": `a\|b`, `a\|b`: `a\\\|b`, `C:\*`: `C:\\\*`,
		"two\r\nlines": "two<br>lines", "<img src=x>": "&lt;img src=x>", "&lt;": "&amp;lt;",
		"*z* `c` [l](u) ~s~": "\\*z\\* \\`c\\` \\[l](u) \\~s\\~", "user_id": "user_id", "_id_": `\_id\_`, "a_": `a\_`,
		"é_ü": "é_ü",
	} {
		if got := string(appendEscaped(nil, text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
