/** Html mails of our own making, in which every link that is to change is known beforehand. */

/** A stretch of html that must stay as it is, or the address of a link. */
export type MailPiece = string | { href: string; target: string }

export interface MadeMail {
  pieces: MailPiece[]
  /** The piece in front of which the ending has to stand. */
  ending_at: number
}

/** Small numbers from a seed, the same each time. */
function numbers(seed: number) {
  let state = seed * 2_654_435_761 + 1
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor(state / 65_536) % below
  }
}

const link = (before: string, href: string, target: string, after: string): MailPiece[] => [
  before,
  { href, target },
  after,
]

/** Each takes a number, so that two of one mail differ. */
const LINKS: ((at: number) => MailPiece[])[] = [
  (at) => link('<a href="', `https://shop.test/${at}`, `https://shop.test/${at}`, '">Buy</a>'),
  (at) => link("<A HREF='", `http://a.test/${at}`, `http://a.test/${at}`, "' title='a > b'>x</A>"),
  (at) =>
    link("<a class=x href=", `https://b.test/${at}?q=1`, `https://b.test/${at}?q=1`, ">b</a>"),
  (at) =>
    link(
      '<a\r\n\ttarget="_blank" href = "',
      `https://c.test/?a=${at}&amp;b=2&amp;copy=3`,
      `https://c.test/?a=${at}&b=2&copy=3`,
      '"\r\n>c</a>',
    ),
  (at) => link('<a href="', ` https://d.test/${at}\n`, `https://d.test/${at}`, '"style=x>d</a>'),
  (at) => link('<a/href="', `https://e.test/${at}`, `https://e.test/${at}`, '"/>'),
  (at) =>
    link('<a href="', `HTTPS://F.test/${at}`, `HTTPS://F.test/${at}`, '"href="//no.test">f</a>'),
  (at) =>
    link(
      '<a data-href="https://no.test" href="',
      `https://g.test/#${at}`,
      `https://g.test/#${at}`,
      '">g</a>',
    ),
  (at) => link('<a href="', `https&#58;//h.test&#x2f;${at}`, `https://h.test/${at}`, '">h</a>'),
  (at) => link('<a href="', `https://i.test/ä/${at}?✓`, `https://i.test/ä/${at}?✓`, '">i</a>'),
  (at) =>
    link(
      '<area href="https://no.test"><a href="',
      `https://j.test/${at}?x&y`,
      `https://j.test/${at}?x&y`,
      '"><img src="cid:x" alt="<a href=https://no.test>"></a>',
    ),
]

/** None of their addresses may change. */
const STILL: ((at: number) => string)[] = [
  () => '<table width="100%"><tr><td style="padding:0 \'x\'">Cell</td></tr></table>\r\n',
  (at) =>
    `<!--[if mso]><v:roundrect href="https://mso.test/${at}"><a href="https://mso.test">x</a><![endif]-->`,
  () => "<![if !mso]><p>Not in Outlook</p><![endif]>",
  (at) =>
    `<img srcset="https://img.test/${at}.png 1x, https://img.test/${at}@2.png 2x" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`,
  () =>
    "<style>a[href='https://style.test']{color:red} /* <a href=\"https://style.test\"> */</style>",
  () => '<script>document.write("<a href=\\"https://script.test\\">")</script>',
  () => '<title><a href="https://title.test">x</a></title>',
  () => '<textarea><a href="https://area.test">x</a></textarea >',
  () => '<a name="top">Top</a><a href="#top">Up</a><a href="">None</a><a href>None</a>',
  () => '<a href="mailto:a@b.test?subject=x">Mail</a><a href="tel:+49123">Call</a>',
  () =>
    '<a data-no-track href="https://own.test">Own</a><a href=https://own.test DATA-NO-TRACK=1>x</a>',
  () => '<a href="/relative">r</a><a href="//no-scheme.test">n</a><a href="ftp://f.test">f</a>',
  () => '<a href="javascript:alert(1)">j</a><a href="https:one-slash.test">o</a>',
  () => '<a href="https://user:word@x.test">u</a><a href="https://[::1">broken</a>',
  () => '<a href="https://x.test/&notanentity;">e</a><a href="https://x.test/&eacute;">e</a>',
  () => "1 < 2 && 3 > 2 <3 </ p> <?php echo 1 ?> <!doctype html> <!> <!--> <a",
  () => "<p title=\"a'b\" title='c\"d' =x>Broken <b>bold <i>text</b></i>",
  () => '<div dir="rtl">שלום עולם 🎉</div>',
  () => '<!-- a comment with <a href="https://comment.test">x</a> and -- dashes --!>',
  () => '<svg><a xlink:href="https://svg.test"><text>x</text></a></svg>',
]

const BEGINNINGS = [
  "",
  '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\r\n<html><head><meta charset="utf-8"></head><body>\r\n',
  "<html><body style='margin:0'>",
  "<center>",
]

/** What a mail ends with, and which part of it the ending goes in front of. */
const ENDINGS: [string, string][] = [
  ["", ""],
  ["", "</body></html>"],
  ["", "</BODY >\r\n</HTML>\r\n"],
  ["<p>Bye</p>", '<!-- a comment that never ends <a href="https://no.test">'],
  ["<p>Bye</p>", '<a href="https://no.test'],
  ["<p>Bye</p>", "<a href=https://no.test"],
  ["<p>Bye</p>", "<style></styl <a href='https://no.test'>"],
]

/** The mail of a number: the same each time. */
export function madeMail(seed: number): MadeMail {
  const below = numbers(seed)
  const pieces: MailPiece[] = [BEGINNINGS[below(BEGINNINGS.length)] ?? ""]
  for (let count = 5 + below(40); count > 0; count--) {
    if (below(3) === 0) pieces.push(...(LINKS[below(LINKS.length)]?.(below(1000)) ?? []))
    else pieces.push(`${STILL[below(STILL.length)]?.(below(1000)) ?? ""}>`)
  }
  const [before = "", after = ""] = ENDINGS[seed % ENDINGS.length] ?? []
  pieces.push(before)
  const ending_at = pieces.length
  return { pieces: [...pieces, after], ending_at }
}
