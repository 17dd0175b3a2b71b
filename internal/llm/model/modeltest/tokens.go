package modeltest

import "regexp"

// MessageTokens is what stands around a message of a request, in tokens.
const MessageTokens = 4

// piece is what a small model's tokenizer makes tokens of, estimated from above: words by four letters, digits and signs one by one, and letters of other scripts one by one.
var piece = regexp.MustCompile(`[A-Za-z]{1,4}|[^A-Za-z ]`)

// Tokens estimates the tokens of texts.
func Tokens(texts ...string) (sum int) {
	for _, text := range texts {
		sum += len(piece.FindAllString(text, -1))
	}
	return sum
}
