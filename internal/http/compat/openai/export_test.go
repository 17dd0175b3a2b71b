package openai

// FileIDOf is the id of a container file, for paths that the surface itself would never give one.
func FileIDOf(path string) string { return cfileID(path) }

// Seal is what compacted conversations are sealed with.
type Seal struct{ seal }

func NewSeal(secret []byte) Seal                           { return Seal{newSeal(secret)} }
func (s Seal) Close(project string, v any) (string, error) { return s.close(project, v) }
func (s Seal) Open(project, sealed string, v any) error    { return s.open(project, sealed, v) }
