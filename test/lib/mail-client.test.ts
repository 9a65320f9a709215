import { expect, test } from "bun:test"
import { isMailProxy, isScanner, mailClientOf } from "../../src/lib/mail-client"

test.each<[string, string | null, string | null, string | null]>([
  [
    "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
    "Gmail",
    null,
    null,
  ],
  [
    "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
    "Yahoo Mail",
    null,
    null,
  ],
  ["Mozilla/5.0", "Apple Mail", null, null],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)",
    "Apple Mail",
    "macOS",
    "desktop",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Apple Mail",
    "iOS",
    "mobile",
  ],
  [
    "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    "Safari",
    "iPadOS",
    "tablet",
  ],
  [
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Win64; x64; Trident/7.0; Microsoft Outlook 16.0.5)",
    "Outlook",
    "Windows",
    "desktop",
  ],
  [
    "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.3.1",
    "Thunderbird",
    "Linux",
    "desktop",
  ],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
    "Edge",
    "Windows",
    "desktop",
  ],
  [
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
    "Chrome",
    "Android",
    "mobile",
  ],
  [
    "Mozilla/5.0 (Linux; Android 14; SM-X710) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/25.0 Chrome/121.0.0.0 Safari/537.36",
    "Samsung Internet",
    "Android",
    "tablet",
  ],
  [
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Chrome",
    "ChromeOS",
    "desktop",
  ],
  ["curl/8.5.0", null, null, null],
])("%s", (agent, client, os, device) => {
  expect(mailClientOf(agent)).toEqual({ client, os, device } as never)
})

test("no name is no client", () => {
  expect(mailClientOf(null)).toEqual({ client: null, os: null, device: null })
})

test("proxies of mail services and scanners are told from programs of people", () => {
  const proxies = ["GoogleImageProxy", "YahooMailProxy; x", "Mozilla/5.0"]
  expect(proxies.every(isMailProxy)).toBe(true)
  const scanners = [
    "Googlebot/2.1",
    "BarracudaCentral",
    "Slackbot-LinkExpanding",
    "Mimecast",
    "WhatsApp/2",
  ]
  expect(scanners.filter((agent) => !isScanner(agent))).toEqual([])
  const people = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "curl/8.5.0",
  ]
  expect(people.some((agent) => isMailProxy(agent) || isScanner(agent))).toBe(false)
})
