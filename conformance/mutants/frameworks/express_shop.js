// The payment service as an Express project would write it: middleware, a limiter from npm, dates by toISOString.
//
// Run with `node express_shop.js PORT`. Objects live in memory and are the same at each start.

import { createHash } from 'node:crypto';
import express from 'express';
import { rateLimit } from 'express-rate-limit';

const KEYS = new Map([
  [process.env.SHOP_LIVE_KEY, 'live'],
  [process.env.SHOP_TEST_KEY, 'test'],
]);
const START = Date.UTC(2026, 2, 1, 9);

// A version 4 UUID that is the same at each start.
function uuid(seed) {
  const hex = createHash('sha256').update(seed).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function seed(mode, count) {
  const book = { charges: [], invoices: [], events: [] };
  const record = (at, type, charge, invoice, details = {}) => {
    book.events.unshift({
      id: uuid(`${mode} ${book.events.length}`),
      type,
      details,
      charge: charge && { ...charge },
      invoice: invoice && { ...invoice },
      created_at: new Date(at),
    });
  };
  for (let number = 0; number < count; number += 1) {
    const at = START + number * 3_600_000;
    const charge = {
      code: uuid(`${mode} charge ${number}`).slice(0, 8),
      status: 'pending',
      fiat_amount: (12 + number).toFixed(2),
      fiat_currency: 'USD',
      asset: 'ETH',
      asset_amount: '0.004',
      received_amount: '0',
      customer_email: 'ann@tea.example',
      description: `Order ${number}`,
      metadata: {},
      payment_link: number % 5 === 0 ? uuid(`${mode} link`).slice(0, 10) : null,
      paid_at: null,
      created_at: new Date(at),
    };
    record(at, 'charge.created', charge, null);
    if (number % 3 === 0) {
      charge.status = 'canceled';
      record(at + 60_000, 'charge.canceled', charge, null);
    } else {
      record(at + 60_000, 'charge.payment_detected', charge, null, { txid: uuid(`${number}`), amount: '0.004' });
      Object.assign(charge, { status: 'paid', received_amount: '0.004', paid_at: new Date(at + 600_000) });
      record(at + 600_000, 'charge.paid', charge, null, { amount: '0.004' });
    }
    book.charges.unshift(charge);
  }
  for (let number = 0; number < count / 3; number += 1) {
    const at = START + 90 * 86_400_000 + number * 3_600_000;
    const invoice = {
      code: uuid(`${mode} invoice ${number}`).slice(0, 8),
      number: `INV-${1000 + number}`,
      status: 'open',
      amount: '12.00',
      currency: 'USD',
      customer: { name: 'Ann Leerick', email: 'ann@tea.example' },
      hosted_url: `https://pay.example/invoice/${mode}/${number}`,
      charges: [],
      created_at: new Date(at),
    };
    record(at, 'invoice.created', null, invoice);
    record(at + 1_000, 'invoice.viewed', null, invoice);
    const charge = book.charges.filter((it) => it.status === 'paid')[number];
    if (number % 2 === 0 && charge) {
      Object.assign(invoice, { status: 'paid', charges: [{ code: charge.code, status: 'paid' }] });
      record(at + 2_000, 'invoice.paid', null, invoice);
    }
    book.invoices.unshift(invoice);
  }
  return book;
}

const books = { live: seed('live', 29), test: seed('test', 33) };
const app = express();
const v1 = express.Router();

v1.use((req, res, next) => {
  const [scheme, key] = (req.get('authorization') ?? '').split(' ');
  const mode = scheme === 'Bearer' ? KEYS.get(key) : undefined;
  if (!mode) {
    // HTTP wants the challenge with a 401; Express adds none of its own.
    res.set('WWW-Authenticate', 'Bearer');
    res.status(401).json({ error: { code: 'unauthorized', message: 'Invalid or missing API key' } });
    return;
  }
  Object.assign(res.locals, { key, mode, book: books[mode] });
  next();
});

v1.use(
  rateLimit({
    windowMs: 60_000,
    limit: 120,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    keyGenerator: (req, res) => res.locals.key,
    message: { error: { code: 'too_many_requests', message: 'Slow down, please' } },
  }),
);

v1.get('/account', (req, res) => {
  res.json({
    data: { account_type: 'personal', profile: { name: 'Tea House' }, currency: 'USD', tolerances: { underpaid: '0.5' } },
    meta: { mode: res.locals.mode, accepted_assets: ['ETH'] },
  });
});

// A list of rows that pass its filters; `charge` and `invoice` name an object by its code.
const list = (kind, filters) => (req, res) => {
  const number = (name, otherwise) => Number(req.query[name] ?? otherwise);
  const page = number('page', 1);
  const size = number('per_page', 25);
  if (!(Number.isInteger(page) && page >= 1 && Number.isInteger(size) && size >= 1 && size <= 100)) {
    res.status(400).json({ error: { code: 'bad_request', message: 'page starts at 1, per_page takes 1 to 100' } });
    return;
  }
  const passes = (row) =>
    filters.every((name) => {
      const value = row[name]?.code ?? row[name];
      return req.query[name] === undefined || value === req.query[name];
    });
  const rows = res.locals.book[kind].filter(passes);
  const last = Math.max(1, Math.ceil(rows.length / size));
  const link = (to) => {
    const query = new URLSearchParams({ ...req.query, page: to, per_page: size });
    return `${req.protocol}://${req.get('host')}${req.baseUrl}${req.path}?${query}`;
  };
  res.json({
    data: rows.slice((page - 1) * size, page * size),
    links: {
      first: link(1),
      last: link(last),
      prev: page > 1 ? link(page - 1) : null,
      next: page < last ? link(page + 1) : null,
    },
    meta: { current_page: page, last_page: last, per_page: size, total: rows.length },
  });
};

v1.get('/charges', list('charges', ['status', 'payment_link']));
v1.get('/invoices', list('invoices', ['status']));
v1.get('/events', list('events', ['type', 'charge', 'invoice']));

v1.get('/events/:id', (req, res, next) => {
  const event = res.locals.book.events.find((it) => it.id === req.params.id);
  if (event) {
    res.json({ event });
  } else {
    next();
  }
});

v1.use((req, res) => {
  res.status(404).json({ error: { code: 'not_found', message: 'There is nothing here' } });
});

app.use('/v1', v1);
app.listen(Number(process.argv[2]), '127.0.0.1');
