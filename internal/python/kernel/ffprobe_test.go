package kernel_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// saidOfFilm is what ffmpeg says of a film, with a title that looks like a line of its own.
const saidOfFilm = `[mov @ 0x1] something to warn of
Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'a.mp4':
  Metadata:
    major_brand     : isom
    title           : A: 9x9, Stream #0:7: Audio: none
  Duration: 00:01:02.05, start: 0.000000, bitrate: 70 kb/s
  Stream #0:0[0x1](und): Video: h264 (High) (avc1 / 0x31637661), yuv420p(tv, bt709, progressive), 64x48 [SAR 1:1 DAR 4:3], 14 kb/s, 29.97 fps, 29.97 tbr, 30k tbn (default)
    Metadata:
      handler_name    : VideoHandler
  Stream #0:1[0x2](und): Audio: aac (LC) (mp4a / 0x6134706D), 44100 Hz, stereo, fltp, 69 kb/s (default)
At least one output file must be specified
`

const saidOfSound = `Input #0, wav, from 'a.wav':
  Duration: 00:00:01.23, bitrate: 6351 kb/s
  Stream #0:0: Audio: pcm_s24le ([1][0][0][0] / 0x0001), 44100 Hz, 5.1, s32 (24 bit), 6350 kb/s
At least one output file must be specified
`

// TestFFProbe asks the stand-in for ffprobe what libraries and people ask of it.
func TestFFProbe(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		testneeds.Absent(t, testneeds.Python, err)
	}
	bin := t.TempDir()
	testneeds.Program(t, filepath.Join(bin, "ffmpeg"), "#!/bin/sh\nexec >&2\n[ \"$1 $2\" = '-hide_banner -i' ] || exit 9\ncase $3 in\n*.mp4) echo '"+strings.ReplaceAll(saidOfFilm, "'", `'"'"'`)+"';;\n*.wav) echo '"+
		strings.ReplaceAll(saidOfSound, "'", `'"'"'`)+"';;\n*) echo \"Error opening input file $3\";;\nesac\nexit 1\n")
	probe := func(args string) (stdout, stderr string, code int) {
		cmd := exec.Command(python, append([]string{"ffprobe.py"}, strings.Fields(args)...)...)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"}
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		_ = cmd.Run() // the exit code says it
		return out.String(), said.String(), cmd.ProcessState.ExitCode()
	}
	for args, want := range map[string]string{
		"-v error -show_entries format=duration -of default=noprint_wrappers=1:nokey=1 a.mp4":                              "62.050000\n",
		"-v error -select_streams v:0 -show_entries stream=width,height,r_frame_rate -of csv=p=0 a.mp4":                    "64,48,30000/1001\n",
		"-loglevel error -select_streams a -show_entries stream=codec_name,sample_rate,channels -of default=nw=1 -i a.mp4": "codec_name=aac\nsample_rate=44100\nchannels=2\n",
		"-show_entries stream=index,codec_type -print_format csv a.mp4":                                                    "stream,0,video\nstream,1,audio\n",
		"-show_entries format=duration:stream=pix_fmt -select_streams 0 a.mp4":                                             "[STREAM]\npix_fmt=yuv420p\n[/STREAM]\n[FORMAT]\nduration=62.050000\n[/FORMAT]\n",
		"-show_entries stream=bits_per_sample,duration,channels -of csv=p=0 a.wav":                                         "6,24,1.230000\n",
		"-select_streams v:0 -show_entries stream=duration,width -of csv=p=0:s=x a.mp4":                                    "64x62.050000\n",
		"-show_entries format=format_name,duration -of csv=nk=0 a.mp4":                                                     "format,format_name=\"mov,mp4,m4a,3gp,3g2,mj2\",duration=62.050000\n",
	} {
		if got, said, code := probe(args); got != want || code != 0 || strings.Contains(args, "error") && said != "" {
			t.Errorf("%s: exit code %d, %q\n%s", args, code, got, said)
		}
	}
	text, said, code := probe("-of json -v info -show_format -show_streams -read_ahead_limit -1 cache:a.mp4")
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 0 || !strings.Contains(said, "Stream #0:1[0x2](und): Audio: aac") || strings.Contains(said, "output file") {
		t.Fatalf("exit code %d, %v: %s\n%s", code, err, text, said)
	}
	want := map[string]any{
		"streams": []any{
			map[string]any{"index": 0.0, "codec_name": "h264", "codec_type": "video", "pix_fmt": "yuv420p", "width": 64.0, "height": 48.0, "bit_rate": "14000", "duration": "62.050000", "r_frame_rate": "30000/1001", "avg_frame_rate": "30000/1001"},
			map[string]any{"index": 1.0, "codec_name": "aac", "codec_type": "audio", "sample_rate": "44100", "channels": 2.0, "sample_fmt": "fltp", "bits_per_sample": 0.0, "bit_rate": "69000", "duration": "62.050000"},
		},
		"format": map[string]any{
			"filename": "cache:a.mp4", "format_name": "mov,mp4,m4a,3gp,3g2,mj2", "duration": "62.050000", "start_time": "0.000000", "bit_rate": "70000", "nb_streams": 2.0,
			"tags": map[string]any{"major_brand": "isom", "title": "A: 9x9, Stream #0:7: Audio: none"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it says %s", text)
	}
	for args, part := range map[string]string{
		"-show_format none": "Error opening input file none", "-show_frames a.mp4": "does not know the option -show_frames", "-show_format": "one input file",
		"-show_entries stream=nb_frames a.mp4": "the entry nb_frames", "-show_entries packet=pts a.mp4": "the section packet", "-show_format -of xml a.mp4": "the form xml",
		"-show_format -of csv=x=1 a.mp4": "the setting x of the form csv", "-show_format -i -": "Error opening input file -",
	} {
		if got, said, code := probe(args); code != 1 || got != "" || !strings.Contains(said, part) {
			t.Errorf("%s: exit code %d, %q, %q", args, code, got, said)
		}
	}
}
