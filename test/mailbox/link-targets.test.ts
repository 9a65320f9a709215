import { expect, test } from "bun:test"
import { linkTargets } from "../../src/mailbox/link-targets"

const LINK = "https://a.test/x"

const marksOf = (html: string | null, text: string | null = null, head = "Subject: x") =>
  Object.fromEntries(
    linkTargets(Buffer.from(`${head}\r\n\r\n`), { html, text }).map(
      ({ url, is_unsubscribe }): [string, boolean] => [url, is_unsubscribe],
    ),
  )

const PHRASES = [
  ...[
    "Unsubscribe",
    "UN&shy;SUB&#8203;SCRIBE",
    "Opt out",
    "opt-out",
    "Opted out",
    "Remove me from this list",
  ],
  ...[
    "Stop receiving these emails",
    "Stop these mails",
    "I no longer want mail",
    "Don’t want these mails?",
  ],
  ...[
    "Manage your email preferences",
    "Email settings",
    "Leave this list",
    "Take me off the list",
    "Remove",
  ],
  ...[
    "Abmelden",
    "Newsletter abbestellen",
    "Melden Sie sich hier ab",
    "Bestellen Sie den Newsletter hier ab",
  ],
  ...[
    "Tragen Sie sich aus",
    "Keine weiteren E-Mails",
    "Sie möchten nichts mehr erhalten? Nicht mehr erhalten",
  ],
  ...[
    "Se désinscrire",
    "Me d&eacute;sabonner",
    "D&Eacute;SABONNER",
    "Ne plus recevoir nos messages",
    "Annuler mon abonnement",
  ],
  ...[
    "Darse de baja",
    "Darme de baja",
    "Cancelar la suscripción",
    "No deseo recibir más correos",
    "Desuscribirse",
  ],
  ...["Descadastre-se", "Cancelar inscrição", "Deixar de receber", "Não quero receber mais"],
  ...[
    "Annulla l'iscrizione",
    "Disiscriviti",
    "Non voglio ricevere più mail",
    "Cancellati dalla lista",
  ],
  ...[
    "Afmelden",
    "Uitschrijven",
    "Schrijf je hier uit",
    "Meld je af",
    "Uitgeschreven worden",
    "Teken uit",
  ],
  ...[
    "Avprenumerera",
    "Avregistrera",
    "Avsluta prenumerationen",
    "Avmeld nyhetsbrev",
    "Frameld",
    "Afmeld",
  ],
  ...[
    "Peruuta tilaus",
    "Lopeta uutiskirje",
    "Afskrá mig",
    "Wypisz się",
    "Rezygnuję",
    "Anuluj subskrypcję",
  ],
  ...[
    "Odhlásit odběr",
    "Odhlásiť sa z odberu",
    "Odjava",
    "Одјава",
    "Odjavite se",
    "Leiratkozás",
    "Dezabonare",
  ],
  ...[
    "Loobu uudiskirjast",
    "Atrakstīties",
    "Atsisakyti prenumeratos",
    "Çregjistrohu",
    "Abonelikten çık",
  ],
  ...[
    "ABONELİKTEN ÇIK",
    "Aboneliği iptal et",
    "Διαγραφή από τη λίστα",
    "Απεγγραφή",
    "Donar-se de baixa",
  ],
  ...[
    "Отписаться",
    "Отменить подписку",
    "Відписатися",
    "Адпісацца",
    "Отписване",
    "Прекратяване на абонамент",
  ],
  ...[
    "取消订阅",
    "取消訂閱",
    "退订",
    "退訂",
    "不再接收此类邮件",
    "拒收",
    "登録解除",
    "配信停止",
    "退会はこちら",
    "購読を解除",
  ],
  ...[
    "オプトアウト",
    "수신거부",
    "수신 거부",
    "구독 취소",
    "إلغاء الاشتراك",
    "الغاء الاشتراك",
    "لغو اشتراک",
    "להסרה מרשימת התפוצה",
  ],
  ...[
    "ביטול מנוי",
    "सदस्यता समाप्त करें",
    "আনসাবস্ক্রাইব সাবস্ক্রিপশন বাতিল",
    "ยกเลิกการรับข่าวสาร",
    "Berhenti berlangganan",
  ],
  ...["Nyahlanggan", "Hủy đăng ký", "HỦY ĐĂNG KÝ", "Jiondoe", "Գրանցումից հրաժարվել"],
]

/** Where the words stand that tell what a link is for. */
const PLACES: Record<string, (words: string) => string> = {
  "in the link": (words) => `<p>Hello</p><a href="${LINK}"><b>${words}</b></a>`,
  "before the link": (words) => `<p>${words}: <a href="${LINK}">here</a></p>`,
  "behind the link": (words) => `<p><a href="${LINK}">Press here</a> (${words})</p>`,
  "in the block before": (words) => `<p>${words}</p><p><a href="${LINK}">Press here</a></p>`,
  "in the cell beside": (words) =>
    `<table><tr><td>${words}</td><td><a href="${LINK}">Press here</a></td></tr></table>`,
  "below an image": (words) => `<div><a href="${LINK}"><img src="x.png"></a></div><p>${words}</p>`,
  "as the alt of an image": (words) => `<a href="${LINK}"><img src="x.png" alt="${words}"></a>`,
  "as the title": (words) => `<a title="${words}" href="${LINK}">No more</a>`,
  "as the title of an image": (words) => `<a href="${LINK}"><img title="${words}"></a>`,
  "as the label": (words) => `<a href="${LINK}" aria-label="${words}">x</a>`,
}

test.each(PHRASES)(
  "words that end a subscription mark a link, wherever they stand: %s",
  (words) => {
    const places = Object.entries(PLACES).filter(([, htmlOf]) => !marksOf(htmlOf(words))[LINK])
    expect(places.map(([name]) => name)).toEqual([])
  },
)

test.each(PHRASES)("in a mail of text, too: %s", (escaped) => {
  const words = escaped
    .replace("&shy;", "\u00ad")
    .replace("&#8203;", "\u200b")
    .replace(/&(.)acute;/, "$1\u0301")
  expect(marksOf(null, `Hello\n\n${words}: ${LINK}`)).toEqual({ [LINK]: true })
  expect(marksOf(null, `Hello\n\n${words}:\n${LINK}\n`)).toEqual({ [LINK]: true })
})

test.each([
  `<p>To unsubscribe from this list, <a href="${LINK}">click here</a>.</p>`,
  `<p><a href="${LINK}">Click here</a></p><p>to unsubscribe.</p>`,
  `<a href="${LINK}" class="unsubscribe-link">x</a>`,
  `<a href="${LINK}"><img src="/images/unsubscribe.png"></a>`,
  `<a href="${LINK}#/unsubscribe">x</a>`,
  `<map><area href="${LINK}" alt="Unsubscribe"></map><a href="${LINK}">x</a>`,
  `<a href="${LINK}">Shop</a>${"<br>Much text. ".repeat(90)}<a href="${LINK}">unsubscribe</a>`,
  `${Array.from({ length: 300 }, (_, n) => `<a href="https://b.test/${n}">x</a>`).join("")}<a href="https://b.test/0">Unsubscribe</a>`,
])("a link is marked: %s", (html) => {
  const [marked] = Object.values(marksOf(html))
  expect(marked).toBe(true)
})

test.each([
  "https://a.test/%75nsubscribe",
  "https://a.test/go?to=https%3A%2F%2Fb.test%2Funsubscribe",
  "https://a.test/go?to=https%253A%252F%252Fb.test%252Funsubscribe",
  "https://a.test/unsubscribe?bad=%ff%zz",
  "https://a.test/x?bad=%ff&do=%75nsub",
  "https://a.test/optOut",
  "https://a.test/mail-preferences",
  "https://unsub.a.test/x",
  "https://a.test/d%C3%A9sinscription",
  "https://a.test/退订",
])("an address that tells it itself is marked: %s", (url) => {
  expect(Object.values(marksOf(`<a href="${url}">Look</a>`))).toEqual([true])
})

test("what one part of a mail tells of an address counts for the other part", () => {
  const html = `<p><a href="${LINK}">Look</a> <a href="https://a.test/shop">Shop</a></p>`
  const text = `Shop: https://a.test/shop\n\nUnsubscribe: ${LINK}\n`
  expect(marksOf(html, text)).toEqual({ [LINK]: true, "https://a.test/shop": false })
})

test.each([
  `List-Unsubscribe: <mailto:u@a.test>, <${LINK}>`,
  `List-Unsubscribe: <${LINK}#now>`,
  `List-Unsubscribe: <https://a.test/\r\n x>`,
  `List-Unsubscribe: ${LINK}`,
  `LIST-UNSUBSCRIBE: < ${LINK} >\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click`,
])("an address of the header is marked in html and in text: %s", (head) => {
  expect(marksOf(`<a href="${LINK}#top">x</a>`, null, head)).toEqual({ [LINK]: true })
  expect(marksOf(null, LINK, head)).toEqual({ [LINK]: true })
})

test("links that only stand in the same mail are asked", () => {
  const html = `<h1>Your order</h1><p>It is on its way. <a href="https://a.test/order">Look at it</a>.</p>
<ul><li><a href="https://a.test/invoice"><img src="pdf.png" alt="Invoice"></a></li></ul>
<p><a href="https://a.test/shop" title="Our shop" class="button">Shop</a></p>
<p>You get this mail because you ordered. <a href="https://a.test/bye">Unsubscribe</a></p>`
  expect(marksOf(html)).toEqual({
    "https://a.test/order": false,
    "https://a.test/invoice": false,
    "https://a.test/shop": false,
    "https://a.test/bye": true,
  })
  const text =
    "Order: https://a.test/order\nShop: https://a.test/shop\nUnsubscribe: https://a.test/bye"
  expect(marksOf(null, text)).toMatchObject({
    "https://a.test/order": false,
    "https://a.test/shop": false,
  })
})

test("a link is asked beside one that unsubscribes, as in a footer, unless it has no words of its own", () => {
  const others = (words: string) =>
    `<p>Good day. <a href="${LINK}">${words}</a> | <a href="https://a.test/bye">Unsubscribe</a> | <a href="https://a.test/help">Help</a></p>`
  expect(marksOf(others("Look at it here"))).toEqual({
    [LINK]: false,
    "https://a.test/bye": true,
    "https://a.test/help": false,
  })
  expect(marksOf(others("»"))).toMatchObject({ [LINK]: true })
})

test.each([
  ...[
    "Confirm your address",
    "Reset your password",
    "The reference",
    "Le Monde",
    "Woodberry carbon hospital",
  ],
  ...[
    "Bestellung ansehen",
    "Voir la commande",
    "Ver el pedido",
    "Zobacz zamówienie",
    "查看订单",
    "注文を見る",
    "Заказ",
  ],
])("usual words of a mail mark nothing: %s", (words) => {
  expect(marksOf(`<p>${words}</p><p><a href="${LINK}">${words}</a></p>`)).toEqual({ [LINK]: false })
})
