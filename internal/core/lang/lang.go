// Package lang is the language in which the command line talks to people: which one that is, and the catalogue with what the program says in it. English is what
// the program is written in; what the catalogue lacks stays English. What programs read, what is stored, logged and sent, and what a model is told is never
// translated.
package lang

import "strings"

// Language is one that the program speaks.
type Language string

// The languages.
const (
	English Language = "en"
	Chinese Language = "zh" // simplified characters
)

// Of is the language for a setting, "" where nothing is set, and for the environment as POSIX and GNU gettext read it: LC_ALL, LC_MESSAGES and LANG say the
// locale, the first that is not empty; where that is not C, LANGUAGE lists the languages that are wanted, the best first. Where the
// locale names another encoding than UTF-8, such as zh_CN.GBK, it is English, which is the same in both. getenv is os.Getenv or a stand-in.
func Of(setting string, getenv func(string) string) Language {
	if l, ok := known(setting); ok {
		return l
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale = getenv(name); locale != "" {
			break
		}
	}
	if first := languageOf(locale); first == "" || first == "c" || first == "posix" || !isUnicode(locale) {
		return English
	}
	for wanted := range strings.SplitSeq(getenv("LANGUAGE"), ":") {
		if l, ok := known(wanted); ok {
			return l
		}
	}
	l, _ := known(locale)
	return l
}

// isUnicode says whether text in the encoding of a locale can be UTF-8, in which the program writes: whether the locale names that or none.
func isUnicode(locale string) bool {
	_, encoding, named := strings.Cut(locale, ".")
	encoding, _, _ = strings.Cut(encoding, "@")
	return !named || strings.EqualFold(strings.ReplaceAll(encoding, "-", ""), "utf8")
}

// known is the language that a locale such as zh_TW.UTF-8 names, English where it names none that the program speaks. Every kind of Chinese is the one there is.
func known(locale string) (l Language, ok bool) {
	switch languageOf(locale) {
	case "en":
		return English, true
	case "zh":
		return Chinese, true
	}
	return English, false
}

// languageOf is the language of a locale: what stands before the country, the encoding and the variant.
func languageOf(locale string) string {
	if at := strings.IndexAny(locale, "_-.@"); at >= 0 {
		locale = locale[:at]
	}
	return strings.ToLower(locale)
}
