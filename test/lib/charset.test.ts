import { expect, test } from "bun:test"
import iconv from "iconv-lite"
import { textOf } from "../../src/lib/charset"

const latin1 = (text: string) => Buffer.from(text, "latin1")

/** A label, a text, and the charset in which the text is written where the label means none or another. */
const labels: [string, string, string?][] = [
  ["windows-31j", "髙橋①", "cp932"],
  ["x-mac-japanese", "日本", "cp932"],
  ["eucjpms", "日本", "euc-jp"],
  ["ks_c_5601-1987", "안녕 똠", "cp949"],
  ["uhc", "똠", "cp949"],
  ["x-gbk", "你好吗", "gbk"],
  ["gb18030", "㐀你", "gb18030"],
  ["big5-hkscs", "你好", "big5"],
  ["tis-620", "สวัสดี", "cp874"],
  ["iso-8859-8-i", "שלום", "iso-8859-8"],
  ["dos-862", "שלום", "cp862"],
  ["8859-2", "Žluť", "iso-8859-2"],
  ["latin-9", "€uro", "iso-8859-15"],
  ["iso_8859-1:1987", "é", "latin1"],
  ["x-mac-ce", "Žluťoučký", "maccenteuro"],
  ["x-mac-greek", "Ελλη", "macgreek"],
  ["x-mac-roman", "L’état", "macroman"],
  ["koi8-ru", "Привет", "koi8-u"],
  ["x-user-defined", "Größe", "cp1252"],
  ["IBM866", "Привет", "cp866"],
  ["cp1251", "Привет", "cp1251"],
  ['"windows-1251" (Cyrillic)', "Привет", "cp1251"],
  ["ibm850", "Größe", "cp850"],
  ["cp28595", "Привет", "iso-8859-5"],
  ["x-koi8-r", "При", "koi8-r"],
  ["csWindows31J", "髙橋", "cp932"],
  ["chinesebig5", "你好", "big5"],
  ["cp1201", "aü", "utf-16be"],
  ['3D"windows-1251"', "При", "cp1251"],
  ["cp858", "€", "cp858"],
  ["w1251", "Привет", "cp1251"],
  ["windows-20866", "Привет", "koi8-r"],
  ["x_mac_korean", "안녕하세요", "cp949"],
  ["ksx1001", "안녕하세요", "cp949"],
  ["EUC_JIS_2004", "日本語", "euc-jp"],
  ["utf-16", "hello ü", "utf-16"],
  ["utf-16be", "日本", "utf-16be"],
  ["utf-32", "hello ü", "utf-32"],
  ["utf8mb4", "Grüße", "utf-8"],
  ["hex", "Grüße", "utf-8"],
  ["us-ascii", "Grüße", "utf-8"],
  ["x-unknown", "日本", "utf-8"],
  ["iso-8859-1", "Grüße", "utf-8"],
  ["shift_jis", "日本", "utf-8"],
  ["gb2312", "这是一个测试", "utf-8"],
  ["utf-16", "日本語", "utf-8"],
  ["cp936", "汉", "gbk"], // which might be UTF-8 as well
  ["iso-2022-jp", "日本語です", "euc-jp"],
  ["iso-2022-jp", "日本語です", "cp932"],
]

test.each(labels)("label %p, text %p", (label, text, written = label) => {
  expect(textOf(iconv.encode(text, written), label)).toBe(text)
})

test.each([
  ["\x1b$BF|K\\\x1b(B\x1b$B8l\x1b(B", "us-ascii", "日本語"],
  ["\x1b(I1234\x1b(B \x1b$B-!\x1b(B \x1b$(D0!\x1b(B", "iso-2022-jp-3", "ｱｲｳｴ ① 丂"],
  ["\x1b$A<:\x1b(B \x1b$(C>H\x1b(B", "iso-2022-jp-2", "己 안"],
  ["\x1b$)C\x0e>H3g\x0f a\r\n\x0e>H\x0f", "", "안녕 a\r\n안"],
  ["\x0e>H3g\x0f hi", "iso-2022-kr", "안녕 hi"],
  ["~{<:Ky2;~} ~~ a~\nb", "hz-gb-2312", "己所不 ~ ab"],
  ["Hi +Jjo-!", "unicode-1-1-utf-7", "Hi ☺!"],
  ["\x1b[31mred", "", "\x1b[31mred"],
])("seven bits are enough for %p", (source, label, text) => {
  expect(textOf(latin1(source), label)).toBe(text)
})

test("a byte that means nothing costs one character", () => {
  const mixed = latin1("Gr\xc3\xbc\xc3\x9fe m\xfcller")
  for (const label of ["utf-8", "", "us-ascii", "no-such"])
    expect(textOf(mixed, label)).toBe("Grüße m\ufffdller")
  expect(textOf(latin1("\xc4\xe3\xff \xba\xc3"), "gbk")).toBe("你\ufffd 好")
  expect(textOf(latin1("\x1b$BF|\x1b(B\xfc"), "iso-2022-jp")).toBe("日ü")
})

test("where the label says nothing, html and the rest of the mail name the charset", () => {
  const russian = (html: string) => iconv.encode(html, "cp1251")
  const far = `<style>${" ".repeat(2_000)}</style><META content='text/html; charset=windows-1251'>Привет`
  for (const label of ["", "utf-8", "iso-8859-1"])
    expect(textOf(russian(far), label, { is_html: true })).toBe(far)
  expect(textOf(russian(far), "koi8-r", { is_html: true })).not.toContain("Привет")
  expect(textOf(russian("Привет"), "", { nearby: () => "windows-1251" })).toBe("Привет")
  const utf8 = "<meta charset=gbk>Größe 日本"
  expect(textOf(Buffer.from(utf8), "us-ascii", { is_html: true })).toBe(utf8)
})

test.each([
  ["efbbbf61", "iso-8859-1", "a"],
  ["fffe6100fc00", "", "aü"],
  ["feff006100fc", "utf-8", "aü"],
  ["fffe000061000000", "", "a"],
])("the mark of %p decides", (hex, label, text) => {
  expect(textOf(Buffer.from(hex, "hex"), label)).toBe(text)
})

test("a charset of seven bits that the rest of the mail names has a near one of eight", () => {
  const japanese = iconv.encode("日本語", "euc-jp")
  expect(textOf(japanese, "", { nearby: () => "iso-2022-jp" })).toBe("日本語")
  expect(textOf(latin1("\xfc"), "iso-2022-jp", { is_html: true })).toBe("ü")
})
