package oldnotebook_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/oldnotebook"
)

// old is in the form of IPython 2; upgraded is what nbformat 5.10 converts it to, but for ids, minor versions and joined lines.
const (
	old = `{"metadata": {"name": "n", "signature": "s", "own": 1.50}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": [
 {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["a\n", "b"]},
 {"cell_type": "code", "collapsed": true, "input": ["x = 1\n", "x"], "language": "python", "metadata": {}, "prompt_number": 3, "outputs": [
  {"output_type": "stream", "stream": "stderr", "text": ["w"]},
  {"output_type": "pyout", "prompt_number": 3, "text": ["1"], "html": ["<b>1</b>"], "metadata": {}},
  {"output_type": "display_data", "png": "AAAA", "json": "{\"a\": 1}"},
  {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": ["t"], "prompt_number": 3}, {"output_type": "?"}]},
 {"cell_type": "html", "source": "<i>"}, {"cell_type": "raw", "source": "r"}, 5, {"cell_type": "code"}], "metadata": {}}, {"cells": [{"cell_type": "markdown", "source": "m"}]}]}`
	upgraded = `{"metadata": {"own": 1.50, "orig_nbformat": 3}, "nbformat": 4, "nbformat_minor": 4, "cells": [
 {"cell_type": "markdown", "metadata": {}, "source": "## a b"},
 {"cell_type": "code", "metadata": {"collapsed": true}, "execution_count": 3, "source": ["x = 1\n", "x"], "outputs": [
  {"output_type": "stream", "name": "stderr", "text": ["w"]},
  {"output_type": "execute_result", "execution_count": 3, "metadata": {}, "data": {"text/plain": ["1"], "text/html": ["<b>1</b>"]}},
  {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA", "application/json": {"a": 1}}},
  {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t"]}]},
 {"cell_type": "markdown", "metadata": {}, "source": "<i>"}, {"cell_type": "raw", "metadata": {}, "source": "r"},
 {"cell_type": "code", "metadata": {}, "execution_count": null, "source": "", "outputs": []}, {"cell_type": "markdown", "metadata": {}, "source": "m"}]}`
)

func TestUpgrade(t *testing.T) {
	t.Parallel()
	var got, want any
	if err := json.Unmarshal(oldnotebook.UpgradeText([]byte(old)), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(upgraded), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, other := range []string{`{"nbformat": 4, "cells": [], "worksheets": []}`, `{"worksheets": []}`, `{"worksheets": 1, "nbformat": 3}`, `"worksheets"`, `["worksheets"]`, `{"worksheets"`, ``} {
		if got := oldnotebook.UpgradeText([]byte(other)); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}
