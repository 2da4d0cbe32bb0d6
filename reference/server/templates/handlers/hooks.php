<?php

$secret = getenv('WEBHOOK_SECRET') ?: throw new RuntimeException('WEBHOOK_SECRET is not set');
$mode = getenv('WEBHOOK_MODE') ?: 'test';
// The events that were handled, one directory each. In production: a table with a unique key, written in the transaction that ships the order.
$handled = getenv('HANDLED_EVENTS') ?: sys_get_temp_dir();

{verify}
$body = file_get_contents('php://input'); // the bytes as received, not parsed JSON
if (!verify($body, $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '', $secret)) {
    http_response_code(400);
    exit('invalid signature');
}
$delivery = json_decode($body, true);
$event = $delivery['event_id'] ?? $delivery['id']; // a test delivery has no event
if (@mkdir("$handled/$event")) { // false if it is there already
    if ($delivery['event'] === 'charge.paid' && $delivery['mode'] === $mode && empty($delivery['test'])) {
        error_log("ship the order of charge {$delivery['data']['charge']['code']}");
    }
}
http_response_code(204);
