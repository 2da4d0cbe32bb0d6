<?php

// Whether a delivery is genuine and at most five minutes old. $body: file_get_contents('php://input').
function verify(string $secret, string $header, string $body, ?int $now = null): bool
{
    $times = [];
    $given = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
        if ($name === 't') $times[] = $value;
        if ($name === 'v1') $given[] = $value;
    }
    if (count($times) !== 1 || !preg_match('/^[0-9]{1,15}\z/', $times[0])) return false;
    if (abs(($now ?? time()) - (int) $times[0]) > 300) return false;
    $expected = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    foreach ($given as $value) {
        if (hash_equals($expected, $value)) return true;
    }
    return false;
}
