package wire

import (
	"strings"
	"testing"
)

const formType = `multipart/form-data; boundary=XyZ`

// form joins parts, each a head and a text, with the boundary XyZ.
func form(parts ...string) string {
	return "--XyZ\r\n" + strings.Join(parts, "\r\n--XyZ\r\n") + "\r\n--XyZ--\r\n"
}

const (
	filePart  = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\x00\xff\r\n--XyY\r\nmodel"
	modelHead = "Content-Disposition: form-data; name=\"model\"\r\n\r\n"
)

func TestScanMultipart(t *testing.T) {
	for _, tt := range []struct {
		name, body, contentType string
		model                   string
		fault                   ScanFault
	}{
		{"model first", form(modelHead+"whisper-1", filePart), formType, "whisper-1", ScanOK},
		{"model behind the file", form(filePart, modelHead+"whisper-1"), formType, "whisper-1", ScanOK},
		{"no model", form(filePart), formType, "", ScanOK},
		{"quoted boundary, odd case", form(modelHead + "m"), `Multipart/Form-Data; charset=utf-8; BOUNDARY="XyZ"`, "m", ScanOK},
		{"names without case", form("content-disposition:FORM-DATA;NAME=model\r\n\r\nm"), formType, "m", ScanOK},
		{"preamble and epilogue", "preamble\r\n" + form(modelHead+"m") + "--XyZ\r\nmore", formType, "m", ScanOK},
		{"blanks behind the boundary", strings.Replace(form(modelHead+"m"), "--XyZ\r\n", "--XyZ \t\r\n", 1), formType, "m", ScanOK},
		{"multi-byte model", form(modelHead + "模型"), formType, "模型", ScanOK},
		{"empty other field", form("Content-Disposition: form-data; name=\"x\"\r\n\r\n", modelHead+"m"), formType, "m", ScanOK},
		{"other field without its blank line's text", "--XyZ\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n--XyZ\r\n" + modelHead + "m\r\n--XyZ--", formType, "m", ScanOK},

		{"model twice", form(modelHead+"a", modelHead+"b"), formType, "", faultFormModelTwice},
		{"empty model", form(modelHead), formType, "", faultModelEmpty},
		{"long model", form(modelHead + strings.Repeat("a", ModelNameBytesMax+1)), formType, "", faultModelLong},
		{"model as a file", form("Content-Disposition: form-data; name=\"model\"; filename=\"m\"\r\n\r\nm"), formType, "", faultFormModelFile},
		{"not a form", form(modelHead + "m"), "application/json", "", faultFormType},
		{"no boundary", form(modelHead + "m"), "multipart/form-data", "", faultFormType},
		{"long boundary", form(modelHead + "m"), "multipart/form-data; boundary=" + strings.Repeat("a", 71), "", faultFormType},
		{"no content type", form(modelHead + "m"), "", "", faultFormType},
		{"empty", "", formType, "", faultForm},
		{"other boundary", form(modelHead + "m"), `multipart/form-data; boundary=abc`, "", faultForm},
		{"no end", strings.TrimSuffix(form(modelHead+"m"), "--\r\n"), formType, "", faultForm},
		{"cut in a head", "--XyZ\r\nContent-Disposition: form", formType, "", faultForm},
		{"cut in a text", "--XyZ\r\n" + modelHead + "m", formType, "", faultForm},
		{"bare line feeds", strings.ReplaceAll(form(modelHead+"m"), "\r\n", "\n"), formType, "", faultForm},
		{"boundary goes on", form(modelHead + "m\r\n--XyZa\r\n"), formType, "", faultForm},
		{"fold line", form("Content-Disposition: form-data;\r\n name=\"model\"\r\n\r\nm"), formType, "", faultForm},
		{"blank before the colon", form("Content-Disposition : form-data; name=\"model\"\r\n\r\nm"), formType, "", faultForm},
		{"no disposition", form("Content-Type: text/plain\r\n\r\nm"), formType, "", faultForm},
		{"two dispositions", form("Content-Disposition: form-data; name=\"x\"\r\n" + modelHead + "m"), formType, "", faultForm},
		{"bad disposition", form("Content-Disposition: form-data; name=\"model\r\n\r\nm"), formType, "", faultForm},
		{"head reaches over a boundary", "--a:b\r\nContent-Disposition: form-data; name=x\r\n--a:b\r\n" + modelHead + "m\r\n--a:b--", `multipart/form-data; boundary="a:b"`, "", faultForm},
		{"huge head", form("X: " + strings.Repeat("a", partHeadBytesMax) + "\r\n" + modelHead + "m"), formType, "", faultFormLarge},
		{"many parts", form(strings.Split(strings.Repeat("Content-Disposition: form-data; name=x\r\n\r\nx\x00", partsMax)+modelHead+"m", "\x00")...), formType, "", faultFormLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			span, fault := ScanMultipart([]byte(tt.body), []byte(tt.contentType))
			if fault != tt.fault {
				t.Fatalf("fault %q, want %q", fault.Message(), tt.fault.Message())
			}
			if got := tt.body[span.Off : span.Off+span.Len]; got != tt.model {
				t.Errorf("model %q, want %q", got, tt.model)
			}
		})
	}
}

func TestMultipartEdit(t *testing.T) {
	body := []byte(form(filePart, modelHead+"alias"))
	span, _ := ScanMultipart(body, []byte(formType))
	e, _, ok := MultipartEdit(nil, body, span, "whisper-一")
	if !ok {
		t.Fatal("no edit")
	}
	out := AppendEdited(nil, body, []Edit{e})
	if want := form(filePart, modelHead+"whisper-一"); string(out) != want || EditedLen(body, []Edit{e}) != len(want) {
		t.Errorf("got %q, want %q", out, want)
	}
	if _, _, ok := MultipartEdit(nil, body, span, "alias"); ok {
		t.Error("an edit although nothing changes")
	}
	if _, _, ok := MultipartEdit(nil, body, Span{}, "x"); ok {
		t.Error("an edit although there is no model")
	}
}

func FuzzMultipart(f *testing.F) {
	f.Add([]byte(form(filePart, modelHead+"m")), formType)
	f.Add([]byte(form(modelHead+"m", modelHead)), `multipart/form-data; boundary="XyZ"`)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		span, fault := ScanMultipart(body, []byte(contentType))
		if fault != ScanOK || span.Len == 0 {
			return
		}
		e, _, ok := MultipartEdit(nil, body, span, "another")
		if !ok {
			return
		}
		out := AppendEdited(nil, body, []Edit{e})
		again, fault := ScanMultipart(out, []byte(contentType))
		if fault != ScanOK || string(out[again.Off:again.Off+again.Len]) != "another" {
			t.Fatalf("%q became %q: %q", body, out, fault.Message())
		}
	})
}
