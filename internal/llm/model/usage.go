package model

// Usage counts tokens. Zero where nobody knows.
type Usage struct {
	InputTokens, OutputTokens int64
	CachedTokens              int64 // of the input, those that the provider had read before
	ReasoningTokens           int64 // of the output, those that were thought and not said
	Estimated                 bool  // by the lengths of what was sent and said: the provider did not say, or what cannot be
}

const (
	// MostTokens is more than anybody can count up to, and little enough that sums of it fit.
	MostTokens = 1 << 50

	bytesPerToken  = 4    // in texts of most languages; others have more tokens than this says
	tokensPerImage = 1000 // about what providers charge
	// What a provider may honestly count beyond a token for each byte: the template around what was sent, a picture, and what a model thought in silence.
	mostAround   = 100_000
	mostPerImage = 50_000
	mostThought  = 1_000_000
)

// Plus is the sum, which stays within MostTokens.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		InputTokens: sum(u.InputTokens, v.InputTokens), OutputTokens: sum(u.OutputTokens, v.OutputTokens),
		CachedTokens: sum(u.CachedTokens, v.CachedTokens), ReasoningTokens: sum(u.ReasoningTokens, v.ReasoningTokens),
		Estimated: u.Estimated || v.Estimated,
	}
}

func sum(a, b int64) int64 {
	a, b = min(max(a, 0), MostTokens), min(max(b, 0), MostTokens)
	return min(a+b, MostTokens)
}

// Total is all tokens.
func (u Usage) Total() int64 { return sum(u.InputTokens, u.OutputTokens) }

// Estimate is what a request and an answer of so many bytes cost about.
func Estimate(req Request, said int64) Usage {
	text, images := size(req)
	return Usage{InputTokens: (text+bytesPerToken-1)/bytesPerToken + tokensPerImage*images, OutputTokens: (said + bytesPerToken - 1) / bytesPerToken, Estimated: true}
}

// credible is a provider's count where it can be true; what cannot, or is missing, is estimated.
func credible(told Usage, req Request, said int64) Usage {
	guess := Estimate(req, said)
	text, images := size(req)
	u := Usage{InputTokens: told.InputTokens, OutputTokens: told.OutputTokens}
	if u.InputTokens < 0 || u.InputTokens > text+mostAround+mostPerImage*images || u.InputTokens == 0 && guess.InputTokens > 0 {
		u.InputTokens, u.Estimated = guess.InputTokens, true
	}
	if u.OutputTokens < 0 || u.OutputTokens > said+mostThought || u.OutputTokens == 0 && said > 0 {
		u.OutputTokens, u.Estimated = guess.OutputTokens, true
	}
	u.CachedTokens = min(max(told.CachedTokens, 0), u.InputTokens)
	u.ReasoningTokens = min(max(told.ReasoningTokens, 0), u.OutputTokens)
	return u
}

// size is how many bytes of text, and how many images, a request has.
func size(req Request) (text, images int64) {
	text = int64(len(req.System) + len(req.Format.Schema))
	for _, t := range req.Tools {
		text += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	for _, m := range req.Messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case Text:
				text += int64(len(c.Text))
			case Image:
				images++
			case ToolCall:
				text += int64(len(c.ID) + len(c.Name) + len(c.Arguments))
			case ToolResult:
				text += int64(len(c.CallID) + len(c.Text))
				images += int64(len(c.Images))
			}
		}
	}
	return text, images
}
