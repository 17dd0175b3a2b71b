package cli

import (
	"strings"
	"testing"
)

func TestProgramText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, refused string }{
		"UTF-8":                     {"print('grüße')\n", "print('grüße')\n", ""},
		"a mark":                    {"\xef\xbb\xbfprint(1)\n", "print(1)\n", ""},
		"a mark and a comment":      {"\xef\xbb\xbf# coding: utf-8\nprint('é')\n", "# coding: utf-8\nprint('é')\n", ""},
		"Latin-1":                   {"# -*- coding: latin-1 -*-\nprint('gr\xfc\xdfe')\n", "# -*- coding: latin-1 -*-\nprint('grüße')\n", ""},
		"vim's comment, line 2":     {"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n", "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'€'\n", ""},
		"GBK":                       {"# coding: gbk\nprint('\xd6\xd0\xce\xc4')\n", "# coding: gbk\nprint('中文')\n", ""},
		"Shift_JIS":                 {"# coding: cp932\r\n'\x93\xfa\x96\x7b'\r\n", "# coding: cp932\r\n'日本'\r\n", ""},
		"UTF-8 by name":             {"# coding=UTF_8\n'é'\n", "# coding=UTF_8\n'é'\n", ""},
		"a comment below code":      {"import os\nx = 1\n# coding: gbk\n'é'\n", "import os\nx = 1\n# coding: gbk\n'é'\n", ""},
		"a comment after code":      {"x = 1\n# coding: gbk\n'é'\n", "x = 1\n# coding: gbk\n'é'\n", ""},
		"none declared":             {"x = 1\nprint('gr\xfc\xdfe')\n", "", "p.py has a byte that is not UTF-8 (0xfc, line 2)"},
		"cut in a letter":           {"'\xe4\xb8", "", "(0xe4, line 1)"},
		"an encoding that is not":   {"# coding: klingon\n'\xfc'\n", "", "klingon"},
		"something else altogether": {"\x7fELF\x00\xff\xfe", "", "(0xff, line 1)"},
		"nothing":                   {"", "", ""},
	} {
		got, err := programText("p.py", []byte(c.text))
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestProgramsOnStandardInput are read as those in files are.
func TestProgramsOnStandardInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"print('\xd6\xd0\xce\xc4')": "", "# -*- coding: gbk -*-\nprint('\xd6\xd0\xce\xc4')": "# -*- coding: gbk -*-\nprint('中文')", "print('中文')": "print('中文')"} {
		c := &runCmd{Program: "-"}
		req, err := c.request(t.Context(), &Program{In: strings.NewReader(text), Getenv: func(string) string { return "" }})
		if req.Code != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "standard input has a byte that is not UTF-8 (0xd6, line 1)") {
			t.Errorf("%q: %q, %v", text, req.Code, err)
		}
	}
}
