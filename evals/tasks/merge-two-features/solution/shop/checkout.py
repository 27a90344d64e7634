FREE_FROM = 500
SHIPPING = 50


def total(prices, discount=0):
    """Return the sum of the prices less a discount in percent, with shipping unless that is FREE_FROM or more."""
    goods = sum(prices) * (100 - discount) // 100
    return goods + SHIPPING if 0 < goods < FREE_FROM else goods
