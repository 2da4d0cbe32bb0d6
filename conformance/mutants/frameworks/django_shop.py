"""The payment service as a Django REST framework project would write it: its paginator, its throttle, its errors.

Run with `python django_shop.py 127.0.0.1:PORT`. Objects live in memory and are the same at each start.
"""

import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for tests",
    INSTALLED_APPS=["rest_framework"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.security.SecurityMiddleware"],
    APPEND_SLASH=False,
    USE_TZ=True,
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None},
)
django.setup()

from django.http import Http404  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework.authentication import BaseAuthentication, get_authorization_header  # noqa: E402
from rest_framework.exceptions import AuthenticationFailed, ValidationError  # noqa: E402
from rest_framework.pagination import PageNumberPagination  # noqa: E402
from rest_framework.permissions import IsAuthenticated  # noqa: E402
from rest_framework.renderers import JSONRenderer  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.throttling import SimpleRateThrottle  # noqa: E402
from rest_framework.utils.urls import replace_query_param  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from shop import KEYS, LIMIT, books  # noqa: E402


class Key:
    """Who asks."""

    is_authenticated = True

    def __init__(self, key: str) -> None:
        self.key = key
        self.mode = KEYS[key]
        self.book = books[self.mode]


class KeyAuthentication(BaseAuthentication):
    def authenticate(self, request):
        scheme, _, key = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        if key not in KEYS:
            raise AuthenticationFailed("Invalid API key.")
        return Key(key), key

    def authenticate_header(self, request):
        return 'Bearer realm="api"'


class KeyThrottle(SimpleRateThrottle):
    rate = f"{LIMIT}/min"

    def get_cache_key(self, request, view):
        return f"throttle {request.auth}" if request.auth else None


class Pages(PageNumberPagination):
    page_size = 25
    page_size_query_param = "per_page"
    max_page_size = 100

    def get_paginated_response(self, data):
        page = self.page
        first = self.request.build_absolute_uri()

        def link(number):
            return replace_query_param(first, "page", number)

        return Response(
            {
                "data": data,
                "links": {
                    "first": link(1),
                    "last": link(page.paginator.num_pages),
                    "prev": self.get_previous_link(),
                    "next": self.get_next_link(),
                },
                "meta": {
                    "current_page": page.number,
                    "last_page": page.paginator.num_pages,
                    "per_page": page.paginator.per_page,
                    "total": page.paginator.count,
                },
            }
        )


class View(APIView):
    authentication_classes = [KeyAuthentication]
    permission_classes = [IsAuthenticated]
    renderer_classes = [JSONRenderer]
    throttle_classes = [KeyThrottle]


class Account(View):
    def get(self, request):
        return Response(
            {
                "data": {
                    "kind": "personal",
                    "display_name": "Tea House",
                    "default_currency": "EUR",
                    "underpayment_tolerance": "0.5",
                },
                "meta": {"mode": request.user.mode, "accepted_assets": ["BTC"]},
            }
        )


class Listing(View):
    """A list with its filters; `choices` names the values that a filter takes, where they are fixed."""

    kind = ""
    filters = ()
    choices = {}

    def get(self, request):
        chosen = {name: request.query_params.get(name) for name in self.filters}
        for name, values in self.choices.items():
            if chosen[name] is not None and chosen[name] not in values:
                raise ValidationError({name: [f"Select a valid choice. {chosen[name]} is not one of them."]})
        rows = getattr(request.user.book, self.kind)(**chosen)
        pages = Pages()
        return pages.get_paginated_response(pages.paginate_queryset(rows, request, view=self))


class Charges(Listing):
    kind = "charges"
    filters = ("status", "payment_link")
    choices = {"status": ("pending", "paid", "expired", "canceled")}


class Invoices(Listing):
    kind = "invoices"
    filters = ("status",)
    choices = {"status": ("open", "paid", "void")}


class Events(Listing):
    kind = "events"
    filters = ("type", "charge", "invoice")


class Event(View):
    def get(self, request, event_id):
        found = request.user.book.event(str(event_id))
        if found is None:
            raise Http404("No Event matches the given query.")
        return Response(found)


urlpatterns = [
    path("v1/account", Account.as_view()),
    path("v1/charges", Charges.as_view()),
    path("v1/invoices", Invoices.as_view()),
    path("v1/events", Events.as_view()),
    path("v1/events/<str:event_id>", Event.as_view()),
]

if __name__ == "__main__":
    execute_from_command_line([sys.argv[0], "runserver", "--noreload", sys.argv[1]])
